"""WriteTxnMarkers: end transactions in partitions that this broker leads, with acks=all.

From transaction coordinators, and from admin clients that abort a hanging transaction. The markers of one
partition are appended in one write, and waited for together; each is judged alone. A marker in a
partition of an internal topic is reported to the coordinator there once it is below the high watermark.
Errors are answered for each partition; the sender sends the marker again.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.partition.append_results import Appended, AppendResult, LateRequest, Refused
from sparklog.broker.partition.leader_append import AppendedMarkers, Marker
from sparklog.broker.partition.partition import Partition
from sparklog.broker.waiting.joint_wait import Share
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.model.transaction_end import TransactionEnd
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

MARKERS_MAX: Final = 1_000
"""The most markers in one append, about 80 kB: others wait for the partition's lock meanwhile."""

Results = dict[TopicPartition, AppendResult]


def handle(call: Call, request: WriteTxnMarkersRequest) -> None:
    now_ms = call.broker.clock.wall_ms()
    writing = _Writing(call, request.markers, [_marker(asked, now_ms) for asked in request.markers])
    appends = writing.appends()
    writing.left = len(appends)
    for append in appends:
        share = Share(append.topic_partition, append.begin, append.partition.leader_append.forget)
        call.broker.appends.run([share], TIMEOUT_MS, partial(writing.keep, append))
    if not appends:
        writing.answer()


class _Writing:
    """One request. ``results``: of each of the markers that were asked for, by partition."""

    def __init__(
        self, call: Call, asked: Sequence[WritableTxnMarker], markers: Sequence[Marker | None]
    ) -> None:
        self.left = 0
        """How many appends are not decided yet."""
        self._call = call
        self._asked = asked
        self._markers = markers
        self._results: list[Results] = [{} for _ in asked]
        self._guard = call.broker.new_guard()

    def appends(self) -> "list[_Append]":
        """What is to be appended. The markers that are not to be get their results here."""
        appends: list[_Append] = []
        for topic_partition, groups in _grouped(self._asked).items():
            found = self._call.partition(topic_partition)
            for numbers in groups:
                markers: dict[int, Marker] = {}
                for number in numbers:
                    marker = self._markers[number]
                    if marker is None:
                        self._results[number][topic_partition] = Refused(ErrorCode.invalid_request)
                    elif isinstance(found, ErrorCode):
                        self._results[number][topic_partition] = Refused(found)
                    else:
                        markers[number] = marker
                if markers and isinstance(found, Partition):
                    appends.append(_Append(topic_partition, found, markers, self._call.context.connection_id))
        return appends

    def keep(self, append: "_Append", results: Results) -> None:
        """An append is decided; any thread may say so."""
        decided = append.decided(results[append.topic_partition])
        if append.topic_partition.topic in INTERNAL_TOPICS:
            self._tell_coordinator(append.topic_partition, decided)
        with self._guard:
            for number, result in decided.items():
                self._results[number][append.topic_partition] = result
            self.left -= 1
            is_last = not self.left
        if is_last:
            self._call.carefully(self.answer)

    def _tell_coordinator(self, topic_partition: TopicPartition, decided: dict[int, AppendResult]) -> None:
        for number, result in decided.items():
            if isinstance(result, Appended):
                asked = self._asked[number]
                self._call.broker.coordinators.on_end(
                    topic_partition, asked.producer_id, asked.transaction_result, result.base_offset
                )

    def answer(self) -> None:
        if any(isinstance(result, LateRequest) for results in self._results for result in results.values()):
            self._call.exchange.close()
            return
        answered = zip(self._asked, self._results, strict=True)
        markers = [_result(asked, results) for asked, results in answered]
        self._call.reply(WriteTxnMarkersResponse(markers=markers))


class _Append:
    """Markers for one partition, by their numbers in the request: no two of them are of one producer."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        partition: Partition,
        markers: dict[int, Marker],
        connection: int,
    ) -> None:
        self.topic_partition = topic_partition
        self.partition = partition
        self._markers = markers
        self._connection = connection
        self._appended: AppendedMarkers | None = None

    def begin(self, token: int) -> AppendResult:
        markers = list(self._markers.values())
        self._appended = self.partition.leader_append.append_markers(
            markers, token, connection=self._connection
        )
        return self._appended.together

    def decided(self, together: AppendResult) -> dict[int, AppendResult]:
        """The result of each marker, by its number."""
        assert self._appended is not None, self.topic_partition
        return dict(zip(self._markers, self._appended.each(together, len(self._markers)), strict=True))


def _marker(asked: WritableTxnMarker, now_ms: int) -> Marker | None:
    """None if it is of no producer."""
    if asked.producer_id < 0 or asked.producer_epoch < 0:
        return None
    return Marker.build(
        TransactionEnd(asked.transaction_result, asked.coordinator_epoch),
        producer_id=asked.producer_id,
        producer_epoch=asked.producer_epoch,
        now_ms=now_ms,
    )


def _grouped(asked: Sequence[WritableTxnMarker]) -> dict[TopicPartition, list[list[int]]]:
    """By partition, the numbers of the markers that are appended together, in their order. Of two markers of
    one producer the second is judged when the first is in the log.
    """
    groups: dict[TopicPartition, list[list[int]]] = {}
    producers: dict[TopicPartition, set[int]] = {}
    for number, marker in enumerate(asked):
        for topic_partition in _topic_partitions(marker):
            known = producers.setdefault(topic_partition, set())
            of_partition = groups.setdefault(topic_partition, [])
            if not of_partition or marker.producer_id in known or len(of_partition[-1]) == MARKERS_MAX:
                of_partition.append([])
                known.clear()
            of_partition[-1].append(number)
            known.add(marker.producer_id)
    return groups


def _topic_partitions(marker: WritableTxnMarker) -> list[TopicPartition]:
    """The partitions, each once."""
    named = (TopicPartition(topic.name, n) for topic in marker.topics for n in topic.partition_indexes)
    return list(dict.fromkeys(named))


def _result(marker: WritableTxnMarker, results: Results) -> WritableTxnMarkerResult:
    topics: dict[str, WritableTxnMarkerTopicResult] = {}
    for name, number in _topic_partitions(marker):
        topic = topics.setdefault(name, WritableTxnMarkerTopicResult(name=name))
        error = results[TopicPartition(name, number)].error
        topic.partitions.append(WritableTxnMarkerPartitionResult(partition_index=number, error_code=error))
    return WritableTxnMarkerResult(producer_id=marker.producer_id, topics=list(topics.values()))
