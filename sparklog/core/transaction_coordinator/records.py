"""The typed records of ``__transaction_state``: one for each transactional id, with the fields of Kafka's."""

from dataclasses import dataclass
from typing import Final

from sparklog.core.transaction_coordinator.states import TransactionState
from sparklog.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NamedTopic, TopicId, TopicPartition

NO_START_MS: Final = -1


@dataclass(frozen=True, slots=True)
class TransactionKey:
    """Kafka's TransactionLogKey (key version 0)."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class TransactionTopic:
    """A topic with partitions in a transaction. ``topic_id`` is all zeros in a record that Kafka wrote."""

    name: str
    topic_id: TopicId
    partitions: tuple[int, ...]
    """In ascending order."""

    @property
    def named(self) -> NamedTopic:
        return NamedTopic(self.name, self.topic_id)

    @property
    def topic_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, number) for number in self.partitions]


@dataclass(frozen=True, slots=True)
class TransactionValue:
    """Kafka's TransactionLogValue: all that is known of one transactional id.

    ``topics``: the partitions that have been added to the open transaction, empty once it is complete.
    ``last_update_ms`` and ``start_ms`` by the wall clock; ``start_ms`` is -1 before the first transaction.
    ``previous_producer_id`` is the one before the epochs were used up. ``last_producer_epoch`` is the epoch
    that InitProducerId replaced at the request of the producer itself (KIP-360); -1 for none.
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    topics: tuple[TransactionTopic, ...]
    last_update_ms: int
    start_ms: int = NO_START_MS
    previous_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
