"""The requests that the coordinator of transactions answers, each with the answers that need no machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.transaction_coordinator.responses import (
    Answer,
    DescribedTransaction,
    InitializedProducer,
    ListedTransactions,
    PartitionAnswers,
)
from sparklog.core.transaction_coordinator.states import TransactionState
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicId, TopicPartition

AnswerT = TypeVar("AnswerT")


class _OfTransactionalId(Generic[AnswerT]):
    """A request about one transactional id, which may not be empty."""

    __slots__ = ()
    transactional_id: str

    @property
    def key(self) -> str:
        return self.transactional_id

    def invalid(self) -> AnswerT | None:
        return None if self.transactional_id else self.refused(ErrorCode.invalid_request)

    def while_loading(self) -> AnswerT:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> AnswerT:
        raise NotImplementedError


class _Answered(_OfTransactionalId[Answer]):
    """Such a request, whose answer is an error code and nothing else."""

    __slots__ = ()

    def refused(self, error: ErrorCode) -> Answer:
        return Answer(error)


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """A producer id and epoch that a client believes to have."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class InitProducerId(_OfTransactionalId[InitializedProducer]):
    """Give the transactional id's producer its id and the next epoch, which fences every other.

    ``expected``: what the producer has, if it only wants a new epoch (KIP-360). ``fresh_producer_id``: an id
    that nobody has, to be sent along once the answer said ``needs_producer_id``.
    """

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdentity | None = None
    fresh_producer_id: int | None = None

    def refused(self, error: ErrorCode) -> InitializedProducer:
        return InitializedProducer(error)


@dataclass(frozen=True, slots=True)
class AddPartitions(_Answered):
    """Add the partitions of ``topics`` to the transaction, which begins with the first of them."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    topics: tuple[TransactionTopic, ...]
    connection: int | None = None
    """Over which it came; see ``core.producers.latest_connections``."""


@dataclass(frozen=True, slots=True)
class VerifyPartitions(_OfTransactionalId[PartitionAnswers]):
    """Say of each partition whether it is in the transaction now (KIP-890).

    ``topic_ids``: of topics by name, as the leader that asks has them. A topic that was made again under its
    name is not in the transaction, and gets no marker of it. Kafka's brokers name none.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    topic_partitions: tuple[TopicPartition, ...]
    topic_ids: Mapping[str, TopicId] = field(default_factory=dict)

    def refused(self, error: ErrorCode) -> PartitionAnswers:
        return PartitionAnswers(dict.fromkeys(self.topic_partitions, error))


@dataclass(frozen=True, slots=True)
class EndTransaction(_Answered):
    """Commit or abort the open transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    connection: int | None = None
    """As with ``AddPartitions``."""


@dataclass(frozen=True, slots=True)
class MarkersWritten(_Answered):
    """Every partition has the marker that ``SendMarkers`` asked for, or is gone. From the shell."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool

    def invalid(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class DescribeTransaction(_OfTransactionalId[DescribedTransaction]):
    transactional_id: str

    def refused(self, error: ErrorCode) -> DescribedTransaction:
        return DescribedTransaction(error, self.transactional_id)


@dataclass(frozen=True, slots=True)
class ListTransactions:
    """The transactional ids of one shard; an empty filter lets everything pass."""

    states: frozenset[TransactionState] = frozenset()
    producer_ids: frozenset[int] = frozenset()

    @property
    def key(self) -> None:
        return None

    def invalid(self) -> None:
        return None

    def while_loading(self) -> ListedTransactions:
        return self.refused(ErrorCode.coordinator_load_in_progress)

    def refused(self, error: ErrorCode) -> ListedTransactions:
        return ListedTransactions(error)


TransactionRequest = (
    InitProducerId
    | AddPartitions
    | VerifyPartitions
    | EndTransaction
    | MarkersWritten
    | DescribeTransaction
    | ListTransactions
)
