"""The answers of the coordinator of transactions."""

from collections.abc import Mapping
from dataclasses import dataclass

from sparklog.core.transaction_coordinator.records import TransactionValue
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition


@dataclass(frozen=True, slots=True)
class Answer:
    """Nothing but whether it worked."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class InitializedProducer:
    """``needs_producer_id``: nothing was changed; ask again with a fresh producer id."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    needs_producer_id: bool = False


@dataclass(frozen=True, slots=True)
class PartitionAnswers:
    """For each partition: NONE if it is in the transaction, else why a batch may not be written."""

    errors: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """``value`` is None with an error."""

    error: ErrorCode
    transactional_id: str
    value: TransactionValue | None = None


@dataclass(frozen=True, slots=True)
class ListedTransactions:
    error: ErrorCode = ErrorCode.none
    transactions: tuple[tuple[str, TransactionValue], ...] = ()
