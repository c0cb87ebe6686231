"""The actions of the controller's machine. The shell carries them out in the order given.

``WriteZooKeeper``, ``Reload`` and the actions that begin with ``Read`` are questions. The shell must report
the outcome before any other fact. A question is always the last action of a list. A ``ClusterEvent`` is an
action too: the shell numbers it, logs it and shows it to whoever follows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

from sparklog.core.controller.commands.controller_command import CommandId, Result
from sparklog.core.controller.events.cluster_event import ClusterEvent
from sparklog.core.controller.state.log_ends import LogEnd
from sparklog.model.cluster_facts import Broker, PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicId, TopicPartition
from sparklog.model.zookeeper import Operation

PushId = NewType("PushId", int)
"""Identifies one message to one broker, and its answer."""


@dataclass(frozen=True, slots=True)
class WriteZooKeeper:
    """Apply all or none; the first operation checks the controller epoch.

    Outcome: ``on_written``, ``on_write_refused``, or ``on_write_lost`` if it is unknown.
    """

    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class ReadBrokers:
    """Read the live brokers and their incarnations again. Outcome: ``on_brokers``."""

    reason: str


@dataclass(frozen=True, slots=True)
class ReadRegistered:
    """Read the ids of all brokers that ever registered. Outcome: ``on_registered``."""

    reason: str


@dataclass(frozen=True, slots=True)
class ReadEntities:
    """Read the settings of users, clients and addresses again. Outcome: ``on_entities``."""

    reason: str


@dataclass(frozen=True, slots=True)
class ReadApplications:
    """Read the applications that run, and what they say of their brokers. Outcome: ``on_applications``."""


@dataclass(frozen=True, slots=True)
class Reload:
    """Read everything again, if this still is the controller. Outcome: ``on_reloaded``.

    ``fences``: a write may still be under way. The shell first makes sure that it can no longer happen.
    """

    reason: str
    fences: bool = False


@dataclass(frozen=True, slots=True)
class Resign:
    """Stop being the controller: forget the machine, stop all channels, run for election again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Connect:
    """Open an ordered channel to this incarnation of a broker."""

    broker: Broker


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the channel to this incarnation, and drop what waits in it."""

    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class TopicUpdate:
    """Some partitions of a topic, and what a broker needs to know of the topic to serve them."""

    name: str
    id: TopicId
    configs: Mapping[str, str]
    partitions: tuple[tuple[int, PartitionState], ...]
    schema_version: int = 0


@dataclass(frozen=True, slots=True)
class SendUpdateMetadata:
    """Send a broker the live brokers and the states of partitions. Leader -2: the partition is being
    deleted.
    """

    push: PushId
    broker: BrokerId
    broker_epoch: BrokerEpoch
    live_brokers: tuple[Broker, ...]
    topics: tuple[TopicUpdate, ...]
    dynamic_configs: Mapping[str, str]
    """The settings of this broker, which go over ``default_configs``."""
    default_configs: Mapping[str, str]
    """The settings of all brokers, which go over those that each was started with."""
    is_full: bool = False
    """Whether there are no other topics than these."""
    ended: tuple[BrokerEpoch, ...] = ()
    """The epochs of brokers that left and are known to have ended."""


@dataclass(frozen=True, slots=True)
class SendLeaderAndIsr:
    """Send a broker the roles of its replicas. ``is_full``: it hosts no others."""

    push: PushId
    broker: BrokerId
    broker_epoch: BrokerEpoch
    is_full: bool
    topics: tuple[TopicUpdate, ...]
    new: frozenset[TopicPartition]
    live_leaders: tuple[Broker, ...]


@dataclass(frozen=True, slots=True)
class SendStopReplica:
    """Stop replicas of a broker, and with ``delete`` delete their logs."""

    push: PushId
    broker: BrokerId
    broker_epoch: BrokerEpoch
    partitions: tuple[tuple[TopicPartition, LeaderEpoch], ...]
    delete: bool
    topic_ids: Mapping[str, TopicId] = field(default_factory=dict)
    """The name may belong to another topic when the broker receives the message, or answers it."""


Send = SendUpdateMetadata | SendLeaderAndIsr | SendStopReplica


@dataclass(frozen=True, slots=True)
class PushAnswer:
    """The answer of one incarnation of a broker to a message: the fact that follows the action.

    ``errors`` has the partitions that failed, and after SendLeaderAndIsr also the others. ``log_ends`` has
    the ends of the logs of partitions without a leader.
    """

    push: PushId
    broker: BrokerId
    broker_epoch: BrokerEpoch
    errors: Mapping[TopicPartition, ErrorCode] = field(default_factory=dict)
    log_ends: Mapping[TopicPartition, LogEnd] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    command: CommandId
    result: Result


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Call ``on_tick`` at this (monotonic) time or soon after."""

    deadline_ms: int


Action = (
    WriteZooKeeper
    | ReadBrokers
    | ReadRegistered
    | ReadEntities
    | ReadApplications
    | Reload
    | Resign
    | Connect
    | Disconnect
    | Send
    | Answer
    | WakeAt
    | ClusterEvent
)
