"""WriteTxnMarkers: end transactions in partitions that this broker leads, with acks=all.

From transaction coordinators, and from admin clients that abort a hanging transaction. A marker in a
partition of an internal topic is told to the coordinator there once it is below the high watermark. Errors
are answered for each partition; whoever sent the marker sends it again.
"""

import threading
from functools import partial
from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.partition.answers import AppendResult
from sparklog.broker.partition.partition import Partition
from sparklog.broker.waiting.joint_wait import Share
from sparklog.model.append_origin import AppendOrigin
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.model.kafka_numbers import ACKS_ALL
from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker
from sparklog.records.envelope import split
from sparklog.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

TIMEOUT_MS: Final = 5_000
"""Longest wait for the replicas of a partition."""

Results = dict[TopicPartition, AppendResult]


def handle(call: Call, request: WriteTxnMarkersRequest) -> None:
    """Each marker waits for itself, because two of them may be for the same partition."""
    answered: dict[int, Results] = {}
    guard = threading.Lock()

    def keep(number: int, results: Results) -> None:
        _tell_coordinators(call, request.markers[number], results)
        with guard:
            answered[number] = results
            if len(answered) < len(request.markers):
                return
        if any(result.is_late for results in answered.values() for result in results.values()):
            call.exchange.close()
            return
        markers = [_result(marker, answered[n]) for n, marker in enumerate(request.markers)]
        call.carefully(lambda: call.reply(WriteTxnMarkersResponse(markers=markers)))

    if not request.markers:
        call.reply(WriteTxnMarkersResponse())
    for number, marker in enumerate(request.markers):
        _write(call, marker, partial(keep, number))


def _write(call: Call, marker: WritableTxnMarker, answer: "partial[None]") -> None:
    refused: Results = {}
    shares: list[Share[AppendResult]] = []
    for topic_partition in _places(marker):
        partition = _writable(call, marker, topic_partition)
        if isinstance(partition, ErrorCode):
            refused[topic_partition] = AppendResult(partition)
        else:
            append = partial(_append, call, partition, marker)
            shares.append(Share(topic_partition, append, partition.forget_produce))
    call.broker.replicas.appends.run(shares, TIMEOUT_MS, answer, refused=refused)


def _writable(call: Call, marker: WritableTxnMarker, place: TopicPartition) -> Partition | ErrorCode:
    if marker.producer_id < 0 or marker.producer_epoch < 0:
        return ErrorCode.invalid_request
    return call.partition(place)


def _append(call: Call, partition: Partition, marker: WritableTxnMarker, token: int) -> AppendResult:
    batch = build_marker(
        TransactionEnd(marker.transaction_result, marker.coordinator_epoch),
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        now_ms=call.broker.replicas.clock.wall_ms(),
    )
    return partition.append_as_leader(
        batch,
        split(batch),
        ACKS_ALL,
        token,
        origin=AppendOrigin.COORDINATOR,
        connection=call.context.connection_id,
    )


def _tell_coordinators(call: Call, marker: WritableTxnMarker, results: Results) -> None:
    for topic_partition, result in results.items():
        if topic_partition.topic in INTERNAL_TOPICS and result.error is ErrorCode.none:
            call.broker.coordinators.on_end(
                topic_partition, marker.producer_id, marker.transaction_result, result.base_offset
            )


def _places(marker: WritableTxnMarker) -> list[TopicPartition]:
    """The partitions, each once."""
    named = (TopicPartition(topic.name, n) for topic in marker.topics for n in topic.partition_indexes)
    return list(dict.fromkeys(named))


def _result(marker: WritableTxnMarker, results: Results) -> WritableTxnMarkerResult:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for name, number in _places(marker):
        topic = topics.setdefault(name, WritableTxnMarkerTopicResult(name=name))
        error = results[TopicPartition(name, number)].error
        topic.partitions.append(WritableTxnMarkerPartitionResult(partition_index=number, error_code=error))
    return WritableTxnMarkerResult(producer_id=marker.producer_id, topics=list(topics.values()))
