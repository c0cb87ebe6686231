"""Changes of partitions that exist (in-sync replicas, leaders, moves) and the results."""

from dataclasses import dataclass

from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicId, TopicPartition


@dataclass(frozen=True, slots=True)
class ProposedMember:
    """An ISR member as its leader saw it; epoch -1 when the leader has not heard of it in this epoch."""

    broker: BrokerId
    epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class IsrProposal:
    """The ISR that a leader wants for one partition, and the state that it was decided on."""

    topic_id: TopicId
    partition: int
    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr: tuple[ProposedMember, ...]

    @property
    def members(self) -> tuple[BrokerId, ...]:
        return tuple(member.broker for member in self.isr)


@dataclass(frozen=True, slots=True)
class AlterPartition:
    broker: BrokerId
    broker_epoch: BrokerEpoch
    proposals: tuple[IsrProposal, ...]


@dataclass(frozen=True, slots=True)
class IsrAnswer:
    """``state`` is what now holds; None with an error."""

    topic_id: TopicId
    partition: int
    error: ErrorCode
    state: PartitionState | None = None


@dataclass(frozen=True, slots=True)
class AlterPartitionResult:
    error: ErrorCode
    answers: tuple[IsrAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Let preferred replicas lead, or with ``unclean`` any live one where there is no leader.
    ``without_store``: also where a leader waits for the history in the remote store, which is given up.

    ``partitions`` None means all of them; the answer then leaves out those that need nothing.
    """

    unclean: bool
    partitions: tuple[TopicPartition, ...] | None = None
    without_store: bool = False


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """What became of one partition that was to be led by, or moved to, others."""

    partition: TopicPartition
    error: ErrorCode = ErrorCode.none
    message: str = ""


@dataclass(frozen=True, slots=True)
class PartitionsResult:
    """``error`` is about the request as a whole. ``operation``: the one whose throttle limits the moves that
    were asked for; -1 where none does.
    """

    partitions: tuple[PartitionResult, ...] = ()
    error: ErrorCode = ErrorCode.none
    message: str = ""
    operation: int = -1


@dataclass(frozen=True, slots=True)
class Move:
    """``target`` is where the replicas shall be, the preferred leader first; None cancels a move."""

    partition: TopicPartition
    target: tuple[BrokerId, ...] | None


@dataclass(frozen=True, slots=True)
class AlterReassignments:
    """``throttle``: what each broker sends and fetches at most for these moves, in bytes a second; 0: no
    limit.
    """

    moves: tuple[Move, ...]
    throttle: int = 0


@dataclass(frozen=True, slots=True)
class ListReassignments:
    """``partitions`` None asks for every move that is under way."""

    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class OngoingMove:
    """``replicas`` has those that are being added and those that will be removed in it."""

    partition: TopicPartition
    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class ReassignmentsResult:
    moves: tuple[OngoingMove, ...] = ()
    error: ErrorCode = ErrorCode.none
    message: str = ""
