"""The controller's work, cut into steps of at most one ZooKeeper write each.

A fact becomes steps. A step is decided over the image, and yields a ``Decision`` or nothing. When a write is
refused or its outcome is unknown, the machine reads again and takes *the same step* again. So a step must be
right however often it is taken, also after an earlier try that succeeded without an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sparklog.core.controller.commands.acl_commands import CreateAcls, DeleteAcls
from sparklog.core.controller.commands.broker_commands import AllocateProducerIds, ControlledShutdown
from sparklog.core.controller.commands.config_commands import ChangeConfigs
from sparklog.core.controller.commands.controller_command import CommandId, Result
from sparklog.core.controller.commands.operation_commands import OperateBrokers
from sparklog.core.controller.commands.partition_commands import AlterPartition, Move, PartitionResult
from sparklog.core.controller.commands.quota_commands import AlterQuotas, DescribeQuotas
from sparklog.core.controller.commands.topic_commands import TopicToCreate
from sparklog.core.controller.commands.user_commands import AlterUsers, DescribeUsers
from sparklog.core.controller.state.image import Change, LiveBroker
from sparklog.core.controller.state.znodes import TopicNode
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicId, TopicPartition
from sparklog.model.zookeeper import Operation


@dataclass(frozen=True, slots=True)
class FailBrokers:
    """These brokers are gone, or an incarnation of them is. Those in ``ended`` are known to have ended."""

    brokers: tuple[BrokerId, ...]
    ended: frozenset[BrokerId] = frozenset()


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
class NoteBrokers:
    """Keep where these brokers run, for the time when they are away."""

    brokers: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class Loss:
    """Acknowledged records of a partition may be lost with a decision; ``words`` say why."""

    partition: TopicPartition
    words: str

    def __str__(self) -> str:
        return f"{self.partition}: {self.words}"


@dataclass(frozen=True, slots=True)
class Elect:
    """Settle partitions; ``partitions`` are those that a decision was made over."""

    partitions: tuple[TopicPartition, ...]
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeIsrs:
    command: CommandId
    request: AlterPartition


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Create one topic, already checked and placed. ``schema`` is as in ``TopicImage``."""

    command: CommandId
    topic: TopicToCreate
    node: TopicNode
    schema: bytes = b""


@dataclass(frozen=True, slots=True)
class FinishCreation:
    """All topics of the command are written: send them to the brokers, and wait for the answers."""

    command: CommandId
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Give one topic more partitions, already checked and placed; ``node`` is the topic afterwards."""

    command: CommandId
    topic: str
    node: TopicNode


@dataclass(frozen=True, slots=True)
class ChangeSchema:
    """Give a topic the version of its columns after ``from_version``, already checked.

    ``schema`` is the topic's document with that version.
    """

    command: CommandId
    topic: str
    topic_id: TopicId
    from_version: int
    schema: bytes

    def __str__(self) -> str:
        return f"ChangeSchema(command={self.command}, {self.topic}, from_version={self.from_version})"


@dataclass(frozen=True, slots=True)
class FinishSchemaChange:
    """The version is written: send it to the brokers, and wait for the answers."""

    command: CommandId


@dataclass(frozen=True, slots=True)
class ApplyConfigs:
    command: CommandId
    request: ChangeConfigs


@dataclass(frozen=True, slots=True)
class ApplyQuotas:
    command: CommandId
    request: AlterQuotas


@dataclass(frozen=True, slots=True)
class ApplyAcls:
    command: CommandId
    request: CreateAcls | DeleteAcls


@dataclass(frozen=True, slots=True)
class ApplyUsers:
    command: CommandId
    request: AlterUsers


@dataclass(frozen=True, slots=True)
class DescribeEntities:
    """Answer a question about users or quotas, whose nodes have just been read."""

    command: CommandId
    request: DescribeQuotas | DescribeUsers


@dataclass(frozen=True, slots=True)
class MoveLeaders:
    """Elections that were asked for, write by write; ``results`` are those of the writes before.

    ``command`` is None for those that the controller makes by itself.
    """

    command: CommandId | None
    unclean: bool
    partitions: tuple[TopicPartition, ...]
    keeps_quiet: bool = False
    """Whether to leave partitions that need nothing out of the answer."""
    results: tuple[PartitionResult, ...] = ()
    without_store: bool = False

    def __str__(self) -> str:
        kind = "unclean" if self.unclean else "preferred"
        return f"MoveLeaders(command={self.command}, {kind}, {_begin_of(self.partitions)})"


@dataclass(frozen=True, slots=True)
class Reassign:
    """Moves that were asked for, write by write; ``results`` are those of the writes before.

    ``throttle``: bytes a second, 0 for no limit; ``operation``: which one a write before has begun for it,
    or -1. ``asked_ms``: when it was asked for, in milliseconds since 1970.
    """

    command: CommandId
    moves: tuple[Move, ...]
    results: tuple[PartitionResult, ...] = ()
    throttle: int = 0
    requested_by: str = ""
    asked_ms: int = 0
    operation: int = -1

    def __str__(self) -> str:
        return f"Reassign(command={self.command}, {_begin_of(self.moves)})"


def _begin_of(items: Sequence[object]) -> str:
    """For the recent events: a hundred thousand names with every write would cost a minute."""
    return f"{len(items)}, first {', '.join(map(str, items[:4]))}"


@dataclass(frozen=True, slots=True)
class StartDeletion:
    command: CommandId
    topic: str


@dataclass(frozen=True, slots=True)
class FinishDeletion:
    """All topics of the command are marked: wait until the live brokers have deleted them."""

    command: CommandId
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class PurgeTopic:
    """Every replica confirmed the deletion: remove the topic's nodes."""

    topic: str


@dataclass(frozen=True, slots=True)
class FinishShutdown:
    """The elections of a controlled shutdown are written: stop the broker's other replicas, and answer."""

    command: CommandId
    request: ControlledShutdown


@dataclass(frozen=True, slots=True)
class AllocateIds:
    command: CommandId
    request: AllocateProducerIds


@dataclass(frozen=True, slots=True)
class BeginOperation:
    """``asked_ms``: when it was asked for, in milliseconds since 1970."""

    command: CommandId
    request: OperateBrokers
    requested_by: str
    asked_ms: int


@dataclass(frozen=True, slots=True)
class CancelOperationStep:
    command: CommandId
    operation: int


@dataclass(frozen=True, slots=True)
class AdvanceOperation:
    """A step of an operation; never queued, because what follows is worked out from the image each time."""

    operation: int


Step = (
    FailBrokers
    | StartBrokers
    | RemoveRegistration
    | NoteBrokers
    | Elect
    | ChangeIsrs
    | CreateTopic
    | FinishCreation
    | AddPartitions
    | ChangeSchema
    | FinishSchemaChange
    | ApplyConfigs
    | ApplyQuotas
    | ApplyAcls
    | ApplyUsers
    | DescribeEntities
    | MoveLeaders
    | Reassign
    | StartDeletion
    | FinishDeletion
    | PurgeTopic
    | FinishShutdown
    | AllocateIds
    | BeginOperation
    | CancelOperationStep
    | AdvanceOperation
)


@dataclass(frozen=True, slots=True)
class Decision:
    """The write of a step, the changes of the image that follow it, and the result to answer then.

    ``operations`` lack the check of the controller epoch, which every write gets. ``rest`` is the step that
    goes on if one write is not enough; ``result`` is None then.
    """

    step: Step
    operations: tuple[Operation, ...]
    changes: tuple[Change, ...]
    result: Result | None = None
    rest: Step | None = None
    losses: tuple[Loss, ...] = ()
    """Records that may be lost with this write."""
