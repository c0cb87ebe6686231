"""What a transactional batch needs before its append: its coordinator's word that the partition is in the
transaction (KIP-890).

Only a batch that would begin its producer's transaction in the partition is asked about; the partition gives
it a guard for the attempt, which a marker of the producer makes void (KAFKA-14402). All partitions of a
request are asked about at once, and nothing of the request is appended before the answer.

    coordinator away, loading, ending the transaction before     NOT_ENOUGH_REPLICAS: clients send again
    partition, or this topic of its name, not in it              INVALID_TXN_STATE
    another producer has the transactional id                    INVALID_PRODUCER_EPOCH, or _ID_MAPPING
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.conversion.intake import Intake
from sparklog.broker.partition.append_results import AppendResult, Refused
from sparklog.broker.partition.partition import Partition
from sparklog.core.producers.verification import VerificationGuard
from sparklog.core.transaction_coordinator.requests import VerifyPartitions
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

Results = dict[TopicPartition, AppendResult]

MESSAGES: Final = {
    ErrorCode.not_enough_replicas: "the coordinator of the transaction could not be asked yet; send it again",
    ErrorCode.invalid_txn_state: "the partition is not in the transaction: add it by AddPartitionsToTxn",
    ErrorCode.invalid_producer_epoch: "a newer producer has the transactional id",
    ErrorCode.invalid_producer_id_mapping: "the transactional id does not belong to this producer id",
}

OF_ANOTHER_PRODUCER: Final = frozenset(
    {ErrorCode.invalid_producer_epoch, ErrorCode.invalid_producer_id_mapping}
)
"""Answers to a producer id or epoch that the transactional id does not have."""

SEVERAL_PRODUCERS: Final = "transactional batches of several producer ids: send a request for each"


@dataclass(slots=True)
class TransactionalBatch:
    """One partition's batch, checked; ``guard`` is None if it need not be asked about."""

    partition: Partition
    taken: Intake
    guard: VerificationGuard | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        return self.partition.topic_partition


def verify(
    call: Call,
    transactional_id: str,
    batches: Sequence[TransactionalBatch],
    answer: Callable[[Results], None],
) -> None:
    """``answer`` gets the refusals of batches that may not be appended, now or later on another thread."""
    producers = {header.producer_id for batch in batches for _, header in batch.taken.accepted.batches}
    if len(producers) > 1:
        refusal = Refused(ErrorCode.invalid_producer_id_mapping, SEVERAL_PRODUCERS)
        answer({batch.topic_partition: refusal for batch in batches})
        return
    asked: dict[TopicPartition, TransactionalBatch] = {}
    for batch in batches:
        batch.guard = batch.partition.leader_append.begin_verification(
            batch.taken.records, batch.taken.accepted.batches
        )
        if batch.guard is not None:
            asked[batch.topic_partition] = batch
    guard = next((batch.guard for batch in asked.values()), None)
    if guard is None:
        answer({})
        return

    def answered(errors: Mapping[TopicPartition, ErrorCode]) -> None:
        answer(_refusals(asked, errors))

    topic_ids = {topic_partition.topic: batch.partition.topic_id for topic_partition, batch in asked.items()}
    identity = (transactional_id, guard.producer_id, guard.producer_epoch)
    call.broker.verifier.verify(VerifyPartitions(*identity, tuple(asked), topic_ids), answered)


def _refusals(
    asked: Mapping[TopicPartition, TransactionalBatch], errors: Mapping[TopicPartition, ErrorCode]
) -> Results:
    refusals: Results = {}
    for topic_partition, error in errors.items():
        if error is ErrorCode.none:
            continue
        refusals[topic_partition] = Refused(error, MESSAGES.get(error, ""))
        batch = asked[topic_partition]
        if error is ErrorCode.not_enough_replicas:
            # Later batches must not overtake it.
            batch.partition.leader_append.note_refused(batch.taken.accepted.batches)
        elif error in OF_ANOTHER_PRODUCER and batch.guard is not None:
            batch.guard.is_refused = True
    return refusals
