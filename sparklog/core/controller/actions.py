"""What the controller's machine wants done. The shell does it, in the order given.

``WriteZooKeeper``, ``ReadBrokers``, ``ReadRegistered`` and ``Reload`` are questions: the shell must feed the
outcome back before it tells the machine anything else. They are always the last action of a list.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

from sparklog.core.controller.commands.command import CommandId, Result
from sparklog.core.controller.state.log_ends import LogEnd
from sparklog.model.cluster import Broker, PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicId, TopicPartition
from sparklog.model.zookeeper import Operation

PushId = NewType("PushId", int)
"""Names one message to one broker, so that its answer can be told from others."""


@dataclass(frozen=True, slots=True)
class WriteZooKeeper:
    """Apply all or none; the first operation checks the controller epoch.

    Outcome: ``on_written``, ``on_write_refused``, or ``on_write_lost`` if nobody knows.
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
class Reload:
    """Read everything again, if we still are the controller. Outcome: ``on_reloaded``.

    ``fences``: a write may still be under way. Before anything is read it has happened, or never will.
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
    """Some partitions of a topic, with what a broker must know about the topic to host or serve them."""

    name: str
    id: TopicId
    configs: Mapping[str, str]
    partitions: tuple[tuple[int, PartitionState], ...]


@dataclass(frozen=True, slots=True)
class SendUpdateMetadata:
    """Tell a broker who lives and where partitions are. Leader -2 says that a partition is being deleted."""

    push: PushId
    broker: BrokerId
    broker_epoch: BrokerEpoch
    live_brokers: tuple[Broker, ...]
    topics: tuple[TopicUpdate, ...]
    dynamic_configs: Mapping[str, str]
    """What was set for this broker, over ..."""
    default_configs: Mapping[str, str]
    """... what was set for all of them, over what each was started with."""
    is_full: bool = False
    """Whether there are no other topics than these."""


@dataclass(frozen=True, slots=True)
class SendLeaderAndIsr:
    """Tell a broker the roles of its replicas. ``is_full`` says that it hosts nothing else."""

    push: PushId
    broker: BrokerId
    broker_epoch: BrokerEpoch
    is_full: bool
    topics: tuple[TopicUpdate, ...]
    new: frozenset[TopicPartition]
    live_leaders: tuple[Broker, ...]


@dataclass(frozen=True, slots=True)
class SendStopReplica:
    """Tell a broker to stop hosting replicas, and with ``delete`` to delete their logs."""

    push: PushId
    broker: BrokerId
    broker_epoch: BrokerEpoch
    partitions: tuple[tuple[TopicPartition, LeaderEpoch], ...]
    delete: bool
    topic_ids: Mapping[str, TopicId] = field(default_factory=dict)
    """A name may have come to mean another topic by the time that the broker hears of this, or answers."""


Send = SendUpdateMetadata | SendLeaderAndIsr | SendStopReplica


@dataclass(frozen=True, slots=True)
class PushAnswer:
    """What one incarnation of a broker answered to a message: not an action, but the fact that follows.

    ``errors`` are the partitions that went wrong, and after SendLeaderAndIsr also those that did not;
    ``log_ends`` where the logs of those end that nobody leads.
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


@dataclass(frozen=True, slots=True)
class Report:
    """Something that an operator should read. ``is_loss``: acknowledged records may be gone."""

    message: str
    is_loss: bool = False


Action = (
    WriteZooKeeper
    | ReadBrokers
    | ReadRegistered
    | Reload
    | Resign
    | Connect
    | Disconnect
    | Send
    | Answer
    | WakeAt
    | Report
)
