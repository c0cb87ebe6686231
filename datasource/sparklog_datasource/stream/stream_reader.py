"""Micro-batch reads.

Spark keeps one reader for the life of a query, for offsets and plans, and pickles another one to tasks, which
it makes in another process, with the first micro-batch. State of the first one reaches a task in a partition
only; so do the ids of columns, because the topic's columns may have changed in between.

Three of Spark's rules shape this module. Spark calls ``initialOffset`` twice, and again after a restart
before the first micro-batch was committed; so the answer is kept, and is a part of the end of the first
micro-batch (``offsets``). "No new records" is the start, unchanged. Spark's limit is a mere number, so the
limits are applied here; only "read everything" (of ``Trigger.Once``) is taken from Spark.
"""

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

from sparklog.model.errors import ConfigError, SparklogError
from sparklog.model.ids import TopicId, TopicPartition
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.monitoring.reporting import group_of_task, metadata_of_task, reporter
from sparklog_datasource.reads.data_loss import Losses
from sparklog_datasource.reads.offset_json import (
    Offsets,
    initial_of_json,
    offsets_of_json,
    offsets_to_json,
    topic_ids_of_json,
)
from sparklog_datasource.reads.range_reading import read_rows
from sparklog_datasource.reads.ranges import OffsetRange, split_ranges, tasks_of_ranges
from sparklog_datasource.reads.read_options import ReadOptions
from sparklog_datasource.reads.topic_form import with_form
from sparklog_datasource.rows.form import RowForm
from sparklog_datasource.rows.typed_form import TypedForm, with_newcomers
from sparklog_datasource.stream.available_now import AvailableNow
from sparklog_datasource.stream.latest import LatestOffsets, others
from sparklog_datasource.stream.limits import MinimumGate, limited
from sparklog_datasource.stream.plan import Edge, planned_ranges, without_deleted
from sparklog_datasource.task_start import StartsTasks


class MicroBatchPartition(InputPartition):  # type: ignore[misc]  # Spark's has no types
    """One Spark partition: ranges that are read one after the other, with the ids of their topics.

    The first one of a micro-batch has the ends of all partitions to report; ``reported`` is None in others.
    """

    def __init__(
        self,
        ranges: Sequence[OffsetRange],
        topic_ids: Mapping[str, TopicId],
        form: RowForm | TypedForm,
        reported: Offsets | None = None,
    ) -> None:
        topics = {offset_range.topic_partition.topic for offset_range in ranges}
        self.ranges = list(ranges)
        self.form = form.of(topics) if isinstance(form, TypedForm) else form
        self.topic_ids = {topic: topic_ids[topic] for topic in sorted(topics & topic_ids.keys())}
        self.reported = reported

    def __repr__(self) -> str:
        return f"MicroBatchPartition({self.ranges})"


class StreamReader(StartsTasks, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]  # Spark's has no types
    """See the module. Stateful, but picklable: connections are the process's (``clients``)."""

    def __init__(self, options: ReadOptions, latest: LatestOffsets | None = None) -> None:
        self._options = options
        self._latest = LatestOffsets(options) if latest is None else latest
        self._initial: dict[TopicPartition, int] | None = None
        """The first answer to ``initialOffset``, which never changes."""

        self._is_under_way = False
        """Whether the first micro-batch is over. Until then ends carry the initial offsets."""

        self._seen_ends: dict[TopicPartition, int] = {}
        """Ends that the log was seen to have."""

        self._seen_ids: dict[str, TopicId] = {}
        """The topics' ids of ``_seen_ends``, or of the ends that ``Trigger.AvailableNow`` captured."""

        self._available_now: AvailableNow | None = None
        """None with any other trigger."""

        least = options.offsets_per_trigger_min
        self._gate = None if least is None else MinimumGate(least, options.trigger_delay_max_ms)

    # What Spark asks before and between micro-batches.

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        self._available_now = AvailableNow()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 (Spark's name)
        options = self._options
        limit = options.offsets_per_trigger_max or options.offsets_per_trigger_min
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        if self._initial is None:
            self._initial = self._latest.initial()
        return offsets_to_json(self._initial, topic_ids=self._latest.topic_ids)

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """The end of the next micro-batch; ``start`` itself if there is none to run."""
        start_ids = topic_ids_of_json(start)
        starts = offsets_of_json(start)
        is_first = not self._is_under_way and initial_of_json(start) is None and starts == self._initial
        self._is_under_way = not is_first
        ends = self._ends(starts, start_ids)
        recreated = others(start_ids, self._seen_ids)
        if not isinstance(limit, ReadAllAvailable):
            known = {
                topic_partition: offset
                for topic_partition, offset in starts.items()
                if topic_partition.topic not in recreated
            }
            ends = self._limited(known, ends)
        if not ends or (ends == starts and not is_first and not recreated):
            return start
        return offsets_to_json(ends, topic_ids=self._seen_ids, initial=starts if is_first else None)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 (Spark's name)
        """The log's ends, without limits, for the query's progress."""
        return offsets_to_json(self._seen_ends) if self._seen_ends else None

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: the query's checkpoint has the offsets, and the last micro-batch is never committed."""

    def stop(self) -> None:
        """Nothing: connections belong to the process, and Spark mostly ends it without asking."""

    # The plan of a micro-batch, and its reading.

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
        ends, end_ids = offsets_of_json(end), topic_ids_of_json(end)
        initial = initial_of_json(end)
        starts = Edge(offsets_of_json(start) if initial is None else initial, topic_ids_of_json(start))
        if self._available_now is not None and self._available_now.target is not None:
            self._available_now.check_end(ends, self._latest.latest(ends, end_ids))
        self._see_as_far_as(ends, end_ids)
        losses = Losses(self._options.fail_on_data_loss)
        ranges = planned_ranges(starts, Edge(ends, end_ids), self._seen_ends, self._latest, losses)
        if self._options.splits_ranges:
            ranges = without_deleted(ranges, self._latest, losses)
        losses.tell()
        topic_ids = {**self._latest.topic_ids, **end_ids}
        reported = ends if self._options.reports_offsets else None
        self._plan_newcomers(ranges)
        form = self._options.form
        return [
            MicroBatchPartition(task, topic_ids, form, reported if i == 0 else None)
            for i, task in enumerate(self._tasks(ranges))
        ]

    def read(self, partition: Any) -> Iterator[Any]:
        if isinstance(partition, MicroBatchPartition):
            with contextlib.closing(self._batches(partition)) as batches:
                first = next(batches, None)
                if partition.reported is not None:  # the report's thread would slow the first fetch down
                    self._report(partition.reported)
                if first is not None:
                    yield first
                    yield from batches

    # Inside.

    def _plan_newcomers(self, ranges: Sequence[OffsetRange]) -> None:
        """Typed topics that a pattern found since get their ids now, for as long as the query lives."""
        form = self._options.form
        if isinstance(form, TypedForm):
            names = {offset_range.topic_partition.topic for offset_range in ranges}
            planned = with_newcomers(cluster_client(self._options.connection), form, names)
            self._options = replace(self._options, form=planned)

    def _batches(self, partition: MicroBatchPartition) -> Generator[Any, None, None]:
        options = replace(self._options, form=partition.form)
        for offset_range in partition.ranges:
            topic_id = partition.topic_ids.get(offset_range.topic_partition.topic)
            yield from read_rows(options, offset_range, topic_id)

    def _report(self, ends: Offsets) -> None:
        group = group_of_task(self._options.report_as)
        if group is not None:
            reporter(self._options.connection).report(group, ends, metadata_of_task())

    def _tasks(self, ranges: list[OffsetRange]) -> list[list[OffsetRange]]:
        """The ranges of each task. Options that divide ranges are followed exactly."""
        if not self._options.splits_ranges:
            return tasks_of_ranges(ranges)
        pieces = split_ranges(
            ranges,
            partitions_min=self._options.partitions_min,
            records_max=self._options.records_per_partition_max,
        )
        return [[piece] for piece in pieces]

    def _ends(
        self, starts: dict[TopicPartition, int], start_ids: dict[str, TopicId]
    ) -> dict[TopicPartition, int]:
        if self._available_now is not None and self._available_now.target is not None:
            return self._available_now.target
        self._seen_ends = self._latest.latest(starts, start_ids)
        self._seen_ids = self._latest.topic_ids
        if self._available_now is not None:
            self._available_now.target = self._seen_ends
        return self._seen_ends

    def _limited(
        self, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        most = self._options.offsets_per_trigger_max
        if most is None and self._gate is None:
            return ends
        starts = {**self._latest.earliest(ends.keys() - starts.keys()), **starts}
        gate = self._gate if self._available_now is None else None
        if gate is not None and gate.holds_back(starts, ends, self._latest.now_ms()):
            return {}
        return ends if most is None else limited(most, starts, ends)

    def _see_as_far_as(self, ends: dict[TopicPartition, int], end_ids: dict[str, TopicId]) -> None:
        """Ask for the log's ends, unless it was seen to have these, which may be a checkpoint's."""
        if any(end > self._seen_ends.get(topic_partition, -1) for topic_partition, end in ends.items()):
            self._seen_ends = self._latest.latest(ends, end_ids)


class RefusingReader(DataSourceStreamReader):  # type: ignore[misc]  # Spark's has no types
    """A reader whose options are wrong: the first question raises the error.

    An error from the making of a reader would reach the user below another one, because PySpark 4.2 and 4.3
    stop the reader that was not made.

    It reads what the query's other reader planned: the topic's columns may have changed between the two.
    """

    def __init__(self, message: str, options: ReadOptions | None = None) -> None:
        self._message = message
        self._options = options

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        raise ConfigError(self._message)

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        raise ConfigError(self._message)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 (Spark's name)
        raise ConfigError(self._message)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
        raise ConfigError(self._message)

    def read(self, partition: Any) -> Iterator[Any]:
        if self._options is None or not isinstance(partition, MicroBatchPartition):
            raise ConfigError(self._message)
        return StreamReader(self._options).read(partition)


def stream_reader(given: Mapping[str, str], schema: Any) -> StreamReader | RefusingReader:
    """The reader for these options."""
    options: ReadOptions | None = None
    try:
        options = ReadOptions.of_stream(given)
        return StreamReader(with_form(options, schema))
    except (SparklogError, OSError) as error:
        return RefusingReader(str(error), options)
