"""The controller's work, cut into steps of at most one ZooKeeper write each.

A fact becomes steps; a step decides over the image and yields a ``Decision``, or nothing. When a write is
refused or its outcome unknown, the machine reads again and takes *the same step once more*: so every step
must come to the right end however often it is taken, also if an earlier try did succeed unseen.
"""

from dataclasses import dataclass

from sparklog.core.controller.commands import (
    AllocateProducerIds,
    AlterPartition,
    CommandId,
    ControlledShutdown,
    NewTopic,
    Result,
)
from sparklog.core.controller.image import Change, LiveBroker
from sparklog.core.controller.znodes import TopicNode
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.zookeeper import Operation


@dataclass(frozen=True, slots=True)
class FailBrokers:
    """These brokers are gone, or an incarnation of them is."""

    brokers: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class StartBrokers:
    """These brokers have registered."""

    brokers: tuple[LiveBroker, ...]


@dataclass(frozen=True, slots=True)
class RemoveRegistration:
    """The supervisor saw this incarnation die: delete its ephemeral node before its session times out."""

    broker: BrokerId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class Elect:
    """Settle partitions; ``partitions`` are those that a decision was made over."""

    partitions: tuple[TopicPartition, ...]
    losses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeIsrs:
    command: CommandId
    request: AlterPartition


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Create one topic, already checked and placed."""

    command: CommandId
    topic: NewTopic
    node: TopicNode


@dataclass(frozen=True, slots=True)
class FinishCreation:
    """All topics of the command are written: tell the brokers, and wait for them."""

    command: CommandId
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class StartDeletion:
    command: CommandId
    topic: str


@dataclass(frozen=True, slots=True)
class FinishDeletion:
    """All topics of the command are marked: wait for the live brokers to let go of them."""

    command: CommandId
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class PurgeTopic:
    """Every replica confirmed the deletion: remove the topic's nodes."""

    topic: str


@dataclass(frozen=True, slots=True)
class FinishShutdown:
    """The elections of a controlled shutdown are through: stop the rest of its replicas and answer."""

    command: CommandId
    request: ControlledShutdown


@dataclass(frozen=True, slots=True)
class AllocateIds:
    command: CommandId
    request: AllocateProducerIds


Step = (
    FailBrokers
    | StartBrokers
    | RemoveRegistration
    | Elect
    | ChangeIsrs
    | CreateTopic
    | FinishCreation
    | StartDeletion
    | FinishDeletion
    | PurgeTopic
    | FinishShutdown
    | AllocateIds
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a step wants written, what the image becomes once it is, and what to answer then.

    ``operations`` do not include the check of the controller epoch: every write gets it.
    """

    step: Step
    operations: tuple[Operation, ...]
    changes: tuple[Change, ...]
    result: Result | None = None
