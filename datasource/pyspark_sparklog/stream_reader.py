"""Micro-batch reads.

Spark keeps one reader for the life of a query, for offsets and plans, and pickles another one to tasks. State
of the first reaches a task only in a partition.

Three of Spark's rules shape this module. Spark calls ``initialOffset`` twice, and again after a restart
before the first micro-batch was committed: its answer is kept, and is part of the end of the first
micro-batch (``offsets``). "No new records" means returning the start unchanged. The limits are applied here,
because Spark's limit is a mere number; only "read everything" (of ``Trigger.Once``) is taken from Spark.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

from pyspark_sparklog.available_now import AvailableNow
from pyspark_sparklog.errors import LossReport
from pyspark_sparklog.latest import LatestOffsets
from pyspark_sparklog.limits import MinimumGate, limited
from pyspark_sparklog.offsets import NOTE_KEY, initial_of_json, offsets_of_json, offsets_to_json
from pyspark_sparklog.ranges import OffsetRange, split_ranges
from pyspark_sparklog.read_options import ReadOptions
from pyspark_sparklog.reading import read_rows
from pyspark_sparklog.rows import refuse_other_schema
from sparklog.model.errors import ConfigError
from sparklog.model.ids import TopicId, TopicPartition


class RangePartition(InputPartition):  # type: ignore[misc]
    """One Spark partition: a range, and the id of the topic that its offsets belong to."""

    def __init__(self, wanted: OffsetRange, topic_id: TopicId | None) -> None:
        self.wanted = wanted
        self.topic_id = topic_id

    def __repr__(self) -> str:
        return f"RangePartition({self.wanted})"


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """See the module. Stateful, but picklable: connections are the process's (``clients``)."""

    def __init__(self, options: ReadOptions, latest: LatestOffsets | None = None) -> None:
        self._options = options
        self._latest = LatestOffsets(options) if latest is None else latest
        self._losses = LossReport(options.fail_on_data_loss)
        self._initial: dict[TopicPartition, int] | None = None
        self._is_under_way = False
        self._seen_ends: dict[TopicPartition, int] = {}
        self._available_now: AvailableNow | None = None
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
        return offsets_to_json(self._initial)

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """The end of the next micro-batch; ``start`` itself if there is none to run."""
        starts = offsets_of_json(start)
        is_first = not self._is_under_way and NOTE_KEY not in start and starts == self._initial
        self._is_under_way = not is_first
        ends = self._ends(starts)
        if not isinstance(limit, ReadAllAvailable):
            ends = self._limited(starts, ends)
        if not ends or (ends == starts and not is_first):
            return start
        return offsets_to_json(ends, initial=starts if is_first else None)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 (Spark's name)
        """For the query's progress: how far the log is, whatever the limits."""
        return offsets_to_json(self._seen_ends) if self._seen_ends else None

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing: the query's checkpoint has the offsets, and the last micro-batch is never committed."""

    def stop(self) -> None:
        """Nothing: connections belong to the process, and Spark mostly ends it without asking."""

    # The plan of a micro-batch, and its reading.

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
        ends = offsets_of_json(end)
        initial = initial_of_json(end)
        starts = offsets_of_json(start) if initial is None else initial
        if self._available_now is not None and self._available_now.target is not None:
            self._available_now.check_end(ends, self._latest.latest(ends))
        starts = self._with_newcomers(starts, ends)
        ranges = self._ranges(starts, self._within_log(ends))
        pieces = split_ranges(
            ranges,
            partitions_min=self._options.partitions_min,
            records_max=self._options.records_per_partition_max,
        )
        topic_id = self._latest.topic_id
        return [RangePartition(piece, topic_id(piece.topic_partition.topic)) for piece in pieces]

    def read(self, partition: Any) -> Iterator[Any]:
        if isinstance(partition, RangePartition):
            yield from read_rows(self._options, partition.wanted, partition.topic_id)

    # Inside.

    def _ends(self, starts: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        if self._available_now is not None and self._available_now.target is not None:
            return self._available_now.target
        self._seen_ends = self._latest.latest(starts)
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

    def _with_newcomers(
        self, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Partitions added since the start are read from their beginning, which should be 0."""
        new = ends.keys() - starts.keys()
        found = self._latest.earliest(new)
        if deleted := sorted(new - found.keys()):
            self._losses.report(
                f"cannot find the earliest offsets of {_names(deleted)}, which were added and deleted"
            )
        for topic_partition, offset in sorted(found.items()):
            if offset != 0:
                self._losses.report(f"added partition {topic_partition} starts from {offset} instead of 0")
        if gone := sorted(starts.keys() - ends.keys()):
            self._losses.report(f"partitions {_names(gone)} are gone")
        return {**found, **starts}

    def _ranges(
        self, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]
    ) -> list[OffsetRange]:
        ranges = [
            OffsetRange(topic_partition, starts[topic_partition], end)
            for topic_partition, end in sorted(ends.items())
            if topic_partition in starts
        ]
        for wanted in ranges:
            if wanted.size < 0:
                self._losses.report(
                    f"the offset of {wanted.topic_partition} was changed from {wanted.start_offset} to "
                    f"{wanted.end_offset}"
                )
        return ranges

    def _within_log(self, ends: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Check ends that are from a checkpoint, because the log may be shorter now."""
        if all(end <= self._seen_ends.get(topic_partition, -1) for topic_partition, end in ends.items()):
            return ends
        self._seen_ends = self._latest.latest(ends)
        nearer = dict(ends)
        for topic_partition, end in sorted(ends.items()):
            latest = self._seen_ends.get(topic_partition)
            if latest is None:
                self._losses.report(f"partition {topic_partition} is gone")
                del nearer[topic_partition]
            elif latest < end:
                self._losses.report(f"the end of {topic_partition} was changed from {end} to {latest}")
                nearer[topic_partition] = latest
        return nearer


class RefusingReader(DataSourceStreamReader):  # type: ignore[misc]
    """Stands in for a reader whose options are wrong.

    An error while a reader is made reaches the user below another one: PySpark 4.2 and 4.3 stop the reader
    that there is not. So it is raised by the first question instead.
    """

    def __init__(self, message: str) -> None:
        self._message = message

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        raise ConfigError(self._message)

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        raise ConfigError(self._message)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 (Spark's name)
        raise ConfigError(self._message)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Any]:
        raise ConfigError(self._message)

    def read(self, partition: Any) -> Iterator[Any]:
        raise ConfigError(self._message)


def stream_reader(given: Mapping[str, str], schema: Any) -> StreamReader | RefusingReader:
    """The reader for these options."""
    try:
        options = ReadOptions.of_stream(given)
        refuse_other_schema(schema, options.include_headers)
    except ConfigError as error:
        return RefusingReader(str(error))
    return StreamReader(options)


def _names(topic_partitions: list[TopicPartition]) -> str:
    return ", ".join(str(topic_partition) for topic_partition in topic_partitions)
