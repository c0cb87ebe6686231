"""Batch reads.

Spark plans a DataFrame's read once and uses the plan for every action, while users expect the latest records
of each action. So the plan has bounds, not offsets, and tasks resolve them when they read. The task of the
last range also reads partitions that were added since the plan.

All tasks read the same state of all partitions (``cuts``), which shows each atomic write whole or not at all.

With ``bytesPerTask``, ``minPartitions`` or ``maxRecordsPerPartition`` a range is split at offsets of
planning time. Only the outer bounds of its pieces move later.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from sparklog.client.admin import Admin
from sparklog.client.isolation import IsolationLevel
from sparklog.client.transactions.cut import Cut, PartitionCut
from sparklog.model.errors import ConfigError
from sparklog.model.ids import TopicPartition
from sparklog_datasource.batch.byte_sizes import bytes_per_offset, gathered, split_by_bytes
from sparklog_datasource.batch.cuts import cut_for_task
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.reads.bounds import LATEST, AtOffset, AtTime, Bound, Everywhere
from sparklog_datasource.reads.data_loss import Loss, Losses, Reason
from sparklog_datasource.reads.discovery import Discovery
from sparklog_datasource.reads.range_reading import read_rows
from sparklog_datasource.reads.ranges import OffsetRange, split_ranges
from sparklog_datasource.reads.read_options import ReadOptions
from sparklog_datasource.reads.resolution import latest_offsets, resolve
from sparklog_datasource.task_start import StartsTasks


@dataclass(frozen=True, slots=True)
class BoundedRange:
    """A range between two bounds, which are resolved when it is read."""

    topic_partition: TopicPartition
    start: Bound
    end: Bound
    planned_start: int | None = None
    """The offset at which the piece begins; None for the first piece of a partition."""
    planned_end: int | None = None
    """The offset at which the piece ends, exclusive; None for the last piece of a partition."""


class BatchPartition(InputPartition):  # type: ignore[misc]  # Spark's has no types
    """One Spark partition. The last one has all ``planned`` partitions, and finds newer ones."""

    def __init__(
        self, ranges: Sequence[BoundedRange], plan: str, planned: frozenset[TopicPartition] | None = None
    ) -> None:
        self.ranges = ranges
        self.plan = plan
        self.planned = planned

    def __repr__(self) -> str:
        return f"BatchPartition({self.ranges})"


class BatchReader(StartsTasks, DataSourceReader):  # type: ignore[misc]  # Spark's has no types
    """The reader of the driver, pickled to tasks; its only state is the options."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[Any]:
        """The Spark partitions: a list, because Spark takes nothing else."""
        ranges = self._plan()
        _refuse_backward(ranges)
        tasks = self._tasks(ranges)
        planned = frozenset(bounded.topic_partition for task in tasks for bounded in task)
        last, plan = len(tasks) - 1, uuid.uuid4().hex
        return [BatchPartition(task, plan, planned if i == last else None) for i, task in enumerate(tasks)]

    def read(self, partition: Any) -> Iterator[Any]:
        """The rows of one Spark partition. Spark gives None for a plan without partitions."""
        if not isinstance(partition, BatchPartition):
            partition = BatchPartition((), uuid.uuid4().hex, frozenset())
        cut = cut_for_task(self._options, partition.plan)
        for bounded in partition.ranges:
            yield from self._read(bounded, cut)
        if partition.planned is not None and self._takes_newcomers:
            for bounded in self._plan(cut):
                if bounded.topic_partition not in partition.planned:
                    yield from self._read(bounded, cut)

    @property
    def _takes_newcomers(self) -> bool:
        """Whether to read partitions that are added later; false if the bounds name partitions."""
        return isinstance(self._options.start, Everywhere) and isinstance(self._options.end, Everywhere)

    def _plan(self, cut: Cut | None = None) -> list[BoundedRange]:
        """The whole ranges of all partitions of the cut, or without a cut of those that exist now."""
        options = self._options
        if cut is None:
            discovery = Discovery(options.subscription, missing_is_error=True)
            topic_partitions = list(discovery.partitions(cluster_client(options.connection)))
        else:
            topic_partitions = sorted(cut.ends)
        starts, ends = options.start.each(topic_partitions), options.end.each(topic_partitions)
        return [
            BoundedRange(topic_partition, starts[topic_partition], ends[topic_partition])
            for topic_partition in topic_partitions
        ]

    def _tasks(self, ranges: list[BoundedRange]) -> list[list[BoundedRange]]:
        """The ranges of each task."""
        bytes_max = self._options.bytes_per_task
        if bytes_max is None:
            return [[bounded] for bounded in self._resolved_and_split(ranges)]
        by_topic_partition = {bounded.topic_partition: bounded for bounded in ranges}
        density = bytes_per_offset(cluster_client(self._options.connection), by_topic_partition)
        pieces = split_by_bytes(self._resolved(ranges), density, bytes_max)
        sizes = [piece.size * density[piece.topic_partition] for piece in pieces]
        bounded_ranges = _with_bounds(by_topic_partition, pieces)
        empty = [0.0] * (len(bounded_ranges) - len(pieces))
        return gathered(bounded_ranges, [*sizes, *empty], bytes_max)

    def _resolved_and_split(self, ranges: list[BoundedRange]) -> list[BoundedRange]:
        """The ranges, in pieces if an option says so."""
        # Timestamps without a match raise here, because an error in a task would be repeated and wrapped.
        options = self._options
        is_split = options.splits_ranges
        if not is_split and not any(isinstance(bounded.start, AtTime) for bounded in ranges):
            return ranges
        by_topic_partition = {bounded.topic_partition: bounded for bounded in ranges}
        pieces = split_ranges(
            self._resolved(ranges),
            partitions_min=options.partitions_min,
            records_max=options.records_per_partition_max,
        )
        return _with_bounds(by_topic_partition, pieces) if is_split else ranges

    def _resolved(self, ranges: list[BoundedRange]) -> list[OffsetRange]:
        admin = Admin(cluster_client(self._options.connection))
        starts = {bounded.topic_partition: bounded.start for bounded in ranges}
        ends = {bounded.topic_partition: bounded.end for bounded in ranges}
        start_offsets = resolve(admin, starts, self._options.isolation_level)
        end_offsets = resolve(admin, ends, self._options.isolation_level)
        resolved = [
            OffsetRange(topic_partition, start_offsets[topic_partition], end_offsets[topic_partition])
            for topic_partition in starts
        ]
        for offset_range in resolved:
            if offset_range.start_offset > offset_range.end_offset:
                raise _backward(
                    offset_range.topic_partition, offset_range.start_offset, offset_range.end_offset
                )
        return resolved

    def _read(self, bounded: BoundedRange, of_all: Cut | None) -> Iterator[Any]:
        cut = None if of_all is None else of_all.of(bounded.topic_partition)
        offset_range = self._resolved([bounded])[0] if cut is None else self._resolved_in(cut, bounded)
        if bounded.planned_start is not None:
            offset_range = replace(
                offset_range, start_offset=max(offset_range.start_offset, bounded.planned_start)
            )
        if bounded.planned_end is not None:
            offset_range = replace(offset_range, end_offset=min(offset_range.end_offset, bounded.planned_end))
        yield from read_rows(self._options, self._within_log(bounded, offset_range, cut), cut=cut)

    def _resolved_in(self, cut: PartitionCut, bounded: BoundedRange) -> OffsetRange:
        """The range at the time of the cut, the same in every task and retry."""
        topic_partition = bounded.topic_partition
        end = AtOffset(cut.high_watermark) if bounded.end == LATEST else bounded.end
        offsets: list[int] = []
        for bound in (bounded.start, end):
            admin = Admin(cluster_client(self._options.connection))
            offset = resolve(admin, {topic_partition: bound}, IsolationLevel.READ_UNCOMMITTED)[
                topic_partition
            ]
            offsets.append(min(offset, cut.high_watermark) if isinstance(bound, AtTime) else offset)
        if offsets[0] > offsets[1]:
            raise _backward(topic_partition, *offsets)
        return OffsetRange(topic_partition, *offsets)

    def _within_log(
        self, bounded: BoundedRange, offset_range: OffsetRange, cut: PartitionCut | None
    ) -> OffsetRange:
        """The part of the range that the log has. A batch read does not wait, so the rest is a loss."""
        if _number(bounded.end) is None or offset_range.size <= 0:
            return offset_range
        topic_partition = offset_range.topic_partition
        if cut is None:
            admin = Admin(cluster_client(self._options.connection))
            latest = latest_offsets(admin, [topic_partition], self._options.isolation_level)[topic_partition]
        else:
            latest = cut.high_watermark
        if latest >= offset_range.end_offset:
            return offset_range
        losses = Losses(self._options.fail_on_data_loss)
        losses.note(
            Loss(
                topic_partition,
                max(latest, offset_range.start_offset),
                offset_range.end_offset,
                Reason.BEYOND_THE_LOG,
                f"the ending offset {offset_range.end_offset} is beyond the end of the log, {latest}",
            )
        )
        losses.tell()
        return replace(offset_range, end_offset=latest)


def _with_bounds(
    by_topic_partition: dict[TopicPartition, BoundedRange], pieces: list[OffsetRange]
) -> list[BoundedRange]:
    """The pieces as bounded ranges. A partition's first piece keeps the start bound, the last the end bound.

    An empty range whose end may move is kept, because it may have records when it is read.
    """
    bounded_pieces: list[BoundedRange] = []
    for i, piece in enumerate(pieces):
        topic_partition = piece.topic_partition
        is_first = i == 0 or pieces[i - 1].topic_partition != topic_partition
        is_last = i == len(pieces) - 1 or pieces[i + 1].topic_partition != topic_partition
        planned_start = None if is_first else piece.start_offset
        planned_end = None if is_last else piece.end_offset
        bounded_pieces.append(
            replace(by_topic_partition[topic_partition], planned_start=planned_start, planned_end=planned_end)
        )
    empty = by_topic_partition.keys() - {piece.topic_partition for piece in pieces}
    may_grow = [
        by_topic_partition[topic_partition]
        for topic_partition in sorted(empty)
        if _number(by_topic_partition[topic_partition].end) is None
    ]
    return [*bounded_pieces, *may_grow]


def _refuse_backward(ranges: list[BoundedRange]) -> None:
    for bounded in ranges:
        start, end = _number(bounded.start), _number(bounded.end)
        if start is not None and end is not None and start > end:
            raise _backward(bounded.topic_partition, start, end)


def _number(bound: Bound) -> int | None:
    """The offset of a bound that needs no question; None for others."""
    return bound.offset if isinstance(bound, AtOffset) and bound.offset >= 0 else None


def _backward(topic_partition: TopicPartition, start_offset: int, end_offset: int) -> ConfigError:
    return ConfigError(
        f"the start offset {start_offset} of {topic_partition} is greater than its end offset {end_offset}; "
        "choose startingOffsets and endingOffsets so that each partition's start is not beyond its end"
    )
