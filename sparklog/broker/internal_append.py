"""How a coordinator writes into internal topics: records in, one answer when they are replicated.

A coordinator lives where a partition of its internal topic leads, and writes only there. It names the leader
epoch in which it began (``BeganLeading``): a coordinator whose partition has changed hands meanwhile writes
nothing, even if the partition leads again by then, and is answered NOT_LEADER_OR_FOLLOWER.

    records --> batch, as a Kafka client would encode it --> LeaderAppend.append(origin=COORDINATOR, acks=all)
            --> JointWaits: answered when the high watermark has passed, or after the time-out
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sparklog.broker.partition.append_request import AppendRequest
from sparklog.broker.partition.append_results import AppendResult, Refused
from sparklog.broker.partition.partition import Partition
from sparklog.broker.replicas.partition_table import PartitionTable
from sparklog.broker.waiting.joint_wait import JointWaits, Share, named_twice
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition
from sparklog.model.kafka_numbers import ACKS_ALL
from sparklog.model.time import Clock
from sparklog.records.envelope import Compression, split
from sparklog.records.kafka.encode import Record, build_records_batch

NAMED_TWICE: Final = "several batches name the same partition: send one at a time"


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalBatch:
    """Records for one partition, which are appended as one batch or not at all.

    ``max_bytes``: the topic's ``max.message.bytes``.
    ``producer_id``, ``producer_epoch``: of the producer whose transaction they belong to; -1 for none.
    """

    topic_partition: TopicPartition
    leader_epoch: int
    records: Sequence[Record]
    max_bytes: int
    compression: Compression = Compression.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class InternalAppends:
    """Appends of coordinators to partitions of this broker."""

    replicas: PartitionTable
    appends: JointWaits[AppendResult, ErrorCode]
    clock: Clock

    def run(
        self,
        batches: Iterable[InternalBatch],
        timeout_ms: int,
        answer: Callable[[dict[TopicPartition, AppendResult]], None],
    ) -> None:
        """Append ``batches``, at most one for each partition; ``answer`` gets one result for each partition.

        Errors: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS and NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        INVALID_PRODUCER_EPOCH, KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT; MESSAGE_TOO_LARGE for a batch above
        its ``max_bytes``; INVALID_REQUEST for a partition that several batches name, of which none is
        appended. With an error and an ``end_offset``, the records are in the log up to there, and may still
        be committed.
        """
        batches = list(batches)
        refused: dict[TopicPartition, AppendResult] = {
            topic_partition: Refused(ErrorCode.invalid_request, NAMED_TWICE)
            for topic_partition in named_twice(batch.topic_partition for batch in batches)
        }
        shares: list[Share[AppendResult]] = []
        for batch in batches:
            if batch.topic_partition in refused:
                continue
            partition = self.replicas.get(batch.topic_partition)
            if partition is None:
                refused[batch.topic_partition] = Refused(ErrorCode.not_leader_or_follower)
            else:
                append = partial(_append, partition, batch, self.clock.wall_ms())
                shares.append(Share(batch.topic_partition, append, partition.leader_append.forget))
        self.appends.run(shares, timeout_ms, answer, refused=refused)


def _append(partition: Partition, batch: InternalBatch, now_ms: int, token: int) -> AppendResult:
    is_transactional = batch.producer_id >= 0
    records = bytearray(
        build_records_batch(
            batch.records,
            now_ms=now_ms,
            compression=batch.compression,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            is_transactional=is_transactional,
        )
    )
    if len(records) > batch.max_bytes:
        message = f"a batch of {len(records)} bytes is larger than max.message.bytes={batch.max_bytes}"
        return Refused(ErrorCode.message_too_large, message)
    request = AppendRequest(
        records, split(records), ACKS_ALL, AppendOrigin.COORDINATOR, leader_epoch=batch.leader_epoch
    )
    return partition.leader_append.append(request, token)
