"""How a coordinator writes into internal topics: records in, one answer when they are replicated.

A coordinator lives where a partition of its internal topic leads, and writes only there. It names the leader
epoch in which it began (``BeganLeading``): a coordinator whose partition has changed hands meanwhile writes
nothing, even if the partition leads again by then, and is answered NOT_LEADER_OR_FOLLOWER.

    records --> batch, as a Kafka client would encode it --> append_as_leader(origin=COORDINATOR, acks=all)
            --> JointWaits: answered when the high watermark has passed, or after the time-out
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from sparklog.broker.partition.answers import AppendResult
from sparklog.broker.partition.partition import Partition
from sparklog.broker.replica_manager import ReplicaManager
from sparklog.broker.waiting.joint_wait import Share
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import ACKS_ALL
from sparklog.records.envelope import split
from sparklog.records.kafka_encode import Record, build_records_batch


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalBatch:
    """Records for one partition, which are appended as one batch or not at all.

    ``producer_id``, ``producer_epoch``: of the producer whose transaction they belong to; -1 for none.
    """

    topic_partition: TopicPartition
    leader_epoch: int
    records: Sequence[Record]
    producer_id: int = -1
    producer_epoch: int = -1


def append_internally(
    replicas: ReplicaManager,
    batches: Iterable[InternalBatch],
    timeout_ms: int,
    answer: Callable[[dict[TopicPartition, AppendResult]], None],
) -> None:
    """Append ``batches``, at most one for each partition; ``answer`` gets one result for each.

    Errors: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS and NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    INVALID_PRODUCER_EPOCH, KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT. After the last one, and after
    NOT_ENOUGH_REPLICAS_AFTER_APPEND, the records are in the log and may still be committed.
    """
    refused: dict[TopicPartition, AppendResult] = {}
    shares: list[Share[AppendResult]] = []
    for batch in batches:
        partition = replicas.get(batch.topic_partition)
        if partition is None:
            refused[batch.topic_partition] = AppendResult(ErrorCode.not_leader_or_follower)
        else:
            append = partial(_append, partition, batch, replicas.clock.wall_ms())
            shares.append(Share(batch.topic_partition, append, partition.forget_produce))
    replicas.appends.run(shares, timeout_ms, answer, refused=refused)


def _append(partition: Partition, batch: InternalBatch, now_ms: int, token: int) -> AppendResult:
    is_transactional = batch.producer_id >= 0
    records = bytearray(
        build_records_batch(
            batch.records,
            now_ms=now_ms,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            is_transactional=is_transactional,
        )
    )
    return partition.append_as_leader(
        records,
        split(records),
        ACKS_ALL,
        token,
        origin=AppendOrigin.COORDINATOR,
        leader_epoch=batch.leader_epoch,
    )
