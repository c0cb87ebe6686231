"""One task attempt's writing: rows are placed in partitions, batched, and sent.

Everything that is wrong with a Spark batch is found before any of its rows are sent.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import TopicMetadata
from sparklog.client.partitioning.partitioner import split_by_partition
from sparklog.client.transactions.writes.failed_writes import AlreadyCommitted
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.client.transactions.writes.write_member import NO_PRODUCER_ID
from sparklog.model.errors import SchemaError
from sparklog.model.ids import TopicPartition
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.writing.batching import Batching, TypedEncoding, UntypedEncoding
from sparklog_datasource.writing.outputs import MemberOutput, Output, PlainOutput
from sparklog_datasource.writing.placing import PartitionChoice, rows_by_topic
from sparklog_datasource.writing.row_sizes import row_sizes
from sparklog_datasource.writing.topics import existing_topic, message_bytes_max
from sparklog_datasource.writing.typed_target import TypedTarget
from sparklog_datasource.writing.write_options import WriteOptions

WRITTEN_COLUMNS: Final = ["key", "value", "headers"]

Found = tuple[TypedTarget | None, TopicMetadata | None]
"""A write's typed target, or the untyped topic of option ``topic``, if it was asked for already."""


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):  # type: ignore[misc]  # Spark's has no types
    """What one task wrote. ``write``: the atomic write that it belongs to, or None.

    ``producer_id``: of the task's member of that write; -1 if it had no rows, or ``is_passed_over``: the
    version was committed before, so nothing was written.
    """

    records_count: int
    batches_count: int
    write: WriteIdentity | None = None
    producer_id: int = NO_PRODUCER_ID
    is_passed_over: bool = False


def write_task(
    options: WriteOptions,
    batches: Iterator[pa.RecordBatch],
    write: WriteIdentity | None = None,
    find: Callable[[], Found] = lambda: (None, None),
) -> Written:
    """Write what one task has, and wait until it is in the log; as a member of ``write``, if there is one.

    ``find`` is asked for the topic once there are rows.
    """
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return Written(0, 0, write)
    target, known = find()
    cluster = cluster_client(options.connection)
    output: Output = PlainOutput(options, cluster) if write is None else MemberOutput(options, cluster, write)
    try:
        with output:
            task: _Task = (
                _UntypedTask(options, output, cluster, known)
                if target is None
                else _TypedTask(options, output, cluster, target)
            )
            task.add(first)
            for batch in batches:
                if batch.num_rows:
                    task.add(batch)
            task.flush()
            output.finish()
    except AlreadyCommitted:
        return Written(0, 0, write, is_passed_over=True)
    return Written(task.records_count, task.batching.batches_count, write, output.producer_id)


class _Task(Protocol):
    batching: Batching
    records_count: int

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a Spark batch; nothing of it is sent if something is wrong with it."""

    def flush(self) -> None:
        """Send what is held."""


@dataclass(frozen=True, slots=True)
class _Topic:
    """What a task knows of a topic it writes to."""

    batch_bytes_max: int
    choice: PartitionChoice


class _UntypedTask:
    """Rows with the columns of untyped topics."""

    def __init__(
        self, options: WriteOptions, output: Output, cluster: ClusterClient, known: TopicMetadata | None
    ) -> None:
        self.records_count = 0
        self.batching = Batching(UntypedEncoding(options.compression), output.send)
        self._output = output
        self._options = options
        self._cluster = cluster
        self._known = known
        self._topics: dict[str, _Topic] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        checked: list[tuple[TopicPartition, pa.RecordBatch, int]] = []
        for name, rows in rows_by_topic(batch, self._options.topic):
            topic = self._topic(name)
            sizes = row_sizes(rows)
            self.batching.check_rows(name, rows.select(WRITTEN_COLUMNS), sizes, topic.batch_bytes_max)
            partitions = topic.choice.choose(rows, sizes)
            for partition, part in split_by_partition(rows.select(WRITTEN_COLUMNS), partitions).items():
                checked.append((TopicPartition(name, partition), part, topic.batch_bytes_max))
        self._output.begin(topic_partition for topic_partition, _, _ in checked)
        for topic_partition, part, bytes_max in checked:
            self.batching.add(topic_partition, part, bytes_max)
        self.records_count += batch.num_rows
        self.batching.flush_if_much_is_held(self._bytes_max)

    def flush(self) -> None:
        self.batching.flush(self._bytes_max)

    def _bytes_max(self, topic: str) -> int:
        return self._topic(topic).batch_bytes_max

    def _topic(self, name: str) -> _Topic:
        if name not in self._topics:
            known = self._known if self._known is not None and self._known.name == name else None
            found = known or existing_topic(self._cluster, name, self._options)
            if found.schema_version:
                raise SchemaError(
                    f"topic {name!r} is typed, and column 'topic' names it: rows that name their topic go to "
                    "untyped topics; write to it by itself, with option topic"
                )
            self._topics[name] = _topic_of(self._cluster, found, self._options)
        return self._topics[name]


class _TypedTask:
    """Rows with the columns of one typed topic."""

    def __init__(
        self, options: WriteOptions, output: Output, cluster: ClusterClient, target: TypedTarget
    ) -> None:
        self.records_count = 0
        self._written = target.written
        self._encoding = TypedEncoding(options.compression, self._written)
        self.batching = Batching(self._encoding, output.send)
        self._output = output
        self._name = options.topic or ""
        self._topic = _topic_of(cluster, existing_topic(cluster, self._name, options), options)

    def add(self, batch: pa.RecordBatch) -> None:
        rows = self._written.rows(batch)
        sizes = self._encoding.sizes(rows)
        bytes_max = self._topic.batch_bytes_max
        self.batching.check_rows(self._name, rows, sizes, bytes_max)
        keys = self._written.keys(rows)
        none = pa.nulls(rows.num_rows)
        keyed = pa.RecordBatch.from_arrays([none if keys is None else keys, none], names=["key", "partition"])
        parts = split_by_partition(rows, self._topic.choice.choose(keyed, sizes))
        self._output.begin(TopicPartition(self._name, partition) for partition in parts)
        for partition, part in parts.items():
            self.batching.add(TopicPartition(self._name, partition), part, bytes_max)
        self.records_count += batch.num_rows
        self.batching.flush_if_much_is_held(self._bytes_max)

    def flush(self) -> None:
        self.batching.flush(self._bytes_max)

    def _bytes_max(self, _topic: str) -> int:
        return self._topic.batch_bytes_max


def _topic_of(cluster: ClusterClient, found: TopicMetadata, options: WriteOptions) -> _Topic:
    bytes_max = message_bytes_max(cluster, found, options)
    if options.request_bytes_max is not None:
        bytes_max = min(bytes_max, options.request_bytes_max)
    count = len(found.partitions)
    return _Topic(bytes_max, PartitionChoice(found.name, count, random.randrange(count)))
