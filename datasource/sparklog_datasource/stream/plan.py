"""The ranges of a micro-batch, by its two offsets and the log as it is now, and its losses.

The start is the end of the last micro-batch. Start and end may be of a checkpoint, and the log may have
changed since. Losses are reported together:

- Partitions that are in the start only are gone.
- Partitions that are in the end only are read from their beginning, which should be 0.
- A topic with another id in the end than in the start was created again. The records after the start are
  lost, and the new topic is read from its beginning, also if its log is longer. Spark's Kafka connector does
  not notice a new topic with a longer log.
- A topic with another id now than in the end is lost in this micro-batch, and new in the next one.
- An end beyond the log's, or before its start, means that the log was cut.
"""

from dataclasses import dataclass, field, replace
from typing import Protocol

from sparklog.model.ids import TopicId, TopicPartition
from sparklog_datasource.reads.data_loss import Loss, Losses, Reason
from sparklog_datasource.reads.offset_json import Offsets
from sparklog_datasource.reads.ranges import OffsetRange
from sparklog_datasource.stream.latest import others


@dataclass(frozen=True, slots=True)
class Edge:
    """One of a micro-batch's two offsets: an offset per partition, and the ids of the topics."""

    offsets: Offsets
    topic_ids: dict[str, TopicId] = field(default_factory=dict)


class LogNow(Protocol):
    """The log as a plan asks for it."""

    topic_ids: dict[str, TopicId]

    def earliest(self, topic_partitions: set[TopicPartition]) -> dict[TopicPartition, int]: ...

    def deletion_reason(self, topic: str) -> Reason: ...


def planned_ranges(start: Edge, end: Edge, latest: Offsets, log: LogNow, losses: Losses) -> list[OffsetRange]:
    """The ranges to read, with losses noted. ``latest`` are ends that the log is known to have."""
    starts, ends = dict(start.offsets), dict(end.offsets)
    ended = others(end.topic_ids, log.topic_ids)
    for topic_partition in sorted(ends):
        if topic_partition.topic in ended:
            first = starts.pop(topic_partition, 0)
            losses.note(Loss(topic_partition, first, ends.pop(topic_partition), Reason.TOPIC_RECREATED))
    recreated = others(start.topic_ids, end.topic_ids) - ended
    for topic_partition in sorted(starts):
        if topic_partition.topic in recreated:
            losses.note(Loss(topic_partition, starts.pop(topic_partition), None, Reason.TOPIC_RECREATED))
    for topic_partition in sorted(starts.keys() - ends.keys()):
        losses.note(_gone(topic_partition, starts[topic_partition]))
    starts = {**_newcomers(ends.keys() - starts.keys(), log, losses), **starts}
    ranges = []
    for topic_partition, wanted_end in sorted(ends.items()):
        if topic_partition in starts:
            offset_range = OffsetRange(topic_partition, starts[topic_partition], wanted_end)
            ranges.append(_within(offset_range, latest, losses))
    return [offset_range for offset_range in ranges if offset_range.size > 0]


def without_deleted(ranges: list[OffsetRange], log: LogNow, losses: Losses) -> list[OffsetRange]:
    """The ranges from the log's start on, with losses noted.

    Ranges need it before they are split into pieces, because each piece's task would report its own share.
    """
    starts = log.earliest({offset_range.topic_partition for offset_range in ranges})
    readable = []
    for offset_range in ranges:
        start = min(starts.get(offset_range.topic_partition, 0), offset_range.end_offset)
        if start > offset_range.start_offset:
            reason = log.deletion_reason(offset_range.topic_partition.topic)
            losses.note(Loss(offset_range.topic_partition, offset_range.start_offset, start, reason))
        readable.append(replace(offset_range, start_offset=max(start, offset_range.start_offset)))
    return readable


def _newcomers(new: set[TopicPartition], log: LogNow, losses: Losses) -> dict[TopicPartition, int]:
    """The beginnings of partitions that were added since the start, with losses noted."""
    found = log.earliest(new)
    for topic_partition in sorted(new - found.keys()):
        sign = f"cannot find the earliest offsets of {topic_partition}, which was added and deleted"
        losses.note(Loss(topic_partition, 0, None, Reason.TOPIC_DELETED, sign))
    for topic_partition, offset in sorted(found.items()):
        if offset != 0:
            sign = f"added partition {topic_partition} starts from {offset} instead of 0"
            reason = log.deletion_reason(topic_partition.topic)
            losses.note(Loss(topic_partition, 0, offset, reason, sign))
    return found


def _within(offset_range: OffsetRange, latest: Offsets, losses: Losses) -> OffsetRange:
    """The part of a range that the log has, with the rest noted as a loss."""
    topic_partition = offset_range.topic_partition
    start, end = offset_range.start_offset, offset_range.end_offset
    if end < start:
        sign = f"the offset of {topic_partition} was changed from {start} to {end}"
        losses.note(Loss(topic_partition, start, None, Reason.LOG_CUT, sign))
        return offset_range
    last = latest.get(topic_partition)
    if last is None:
        if end > start:
            losses.note(_gone(topic_partition, start, end))
        return OffsetRange(topic_partition, start, start)
    if last >= end:
        return offset_range
    sign = f"the end of {topic_partition} was changed from {end} to {last}"
    losses.note(Loss(topic_partition, max(last, start), end, Reason.LOG_CUT, sign))
    return OffsetRange(topic_partition, start, last)


def _gone(topic_partition: TopicPartition, start: int, end: int | None = None) -> Loss:
    return Loss(topic_partition, start, end, Reason.TOPIC_DELETED, f"partitions {topic_partition} are gone")
