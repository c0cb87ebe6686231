"""Batch and streaming writes.

Exactly once, the default: every task attempt is a member of one atomic write (``writing``). The attempts
whose messages Spark hands to the driver win. A task without rows is no member. A plain write without rows
asks the coordinator nothing; one with a version is committed, so that the version counts as written.

At least once: every task has an idempotent producer of its own and ends when everything it sent is in the
log, so a commit has nothing left to do. A task that Spark runs again writes its rows again, as with Spark's
Kafka connector.
"""

import logging
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from sparklog.client.admin import Admin
from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import TopicMetadata
from sparklog.client.partitioning.partitioner import split_by_partition
from sparklog.client.transactions.writes.failed_writes import AlreadyCommitted
from sparklog.client.transactions.writes.write_coordinator import check_served
from sparklog.client.transactions.writes.write_driver import Commit, abort_write, commit_write
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.client.transactions.writes.write_member import NO_PRODUCER_ID
from sparklog.model.errors import ConfigError, KafkaError, SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import TOPIC_RESOURCE
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.reads.discovery import UNKNOWN_TOPIC
from sparklog_datasource.task_start import StartsTasks
from sparklog_datasource.writing.batching import Batching
from sparklog_datasource.writing.delivery import batch_identity, stream_identity
from sparklog_datasource.writing.outputs import MemberOutput, Output, PlainOutput
from sparklog_datasource.writing.placing import PartitionChoice, rows_by_topic
from sparklog_datasource.writing.row_sizes import row_sizes
from sparklog_datasource.writing.write_options import WriteOptions
from sparklog_datasource.writing.write_schema import check_schema

WRITTEN_COLUMNS: Final = ["key", "value", "headers"]
ASK_AGAIN_S: Final = 0.05

logger: Final = logging.getLogger(__name__)


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


@dataclass(frozen=True, slots=True)
class _Topic:
    """What a task knows of a topic it writes to."""

    batch_bytes_max: int
    choice: PartitionChoice


class _Task:
    """One task attempt's writing."""

    def __init__(self, options: WriteOptions, output: Output, cluster: ClusterClient) -> None:
        self.records_count = 0
        self.batching = Batching(options.compression, output.send)
        self._output = output
        self._options = options
        self._cluster = cluster
        self._topics: dict[str, _Topic] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Everything that is wrong with a Spark batch is found before any of its rows are sent."""
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
            partitions_count = len(existing_topic(self._cluster, name, self._options).partitions)
            bytes_max = _message_bytes_max(self._cluster, name, self._options)
            if self._options.request_bytes_max is not None:
                bytes_max = min(bytes_max, self._options.request_bytes_max)
            choice = PartitionChoice(name, partitions_count, random.randrange(partitions_count))
            self._topics[name] = _Topic(bytes_max, choice)
        return self._topics[name]


def _message_bytes_max(cluster: ClusterClient, name: str, options: WriteOptions) -> int:
    """The largest batch that a topic takes; a broker may learn of a new topic a moment after others."""
    deadline = cluster.deadline(options.topic_wait_ms)
    while True:
        try:
            settings = Admin(cluster).describe_configs(TOPIC_RESOURCE, [name])[name]
            return int(settings["max.message.bytes"][0])
        except KafkaError as error:
            if error.code not in UNKNOWN_TOPIC or deadline.is_over:
                raise
        time.sleep(ASK_AGAIN_S)


def existing_topic(cluster: ClusterClient, name: str, options: WriteOptions) -> TopicMetadata:
    """The topic as it is now; the request may create it (``auto.create.topics.enable``).

    Raises KafkaError with the remedy if there is no such topic. An earlier task's metadata is not used,
    because the topic may have been deleted since, or have more partitions.
    """
    try:
        cluster.metadata([name], max_age_ms=0)
        return cluster.topic(name, timeout_ms=options.topic_wait_ms)
    except KafkaError as error:
        remedy = "; create it, or allow the brokers to (auto.create.topics.enable)"
        if error.code not in UNKNOWN_TOPIC:
            remedy = ""
        raise KafkaError(error.code, f"cannot write to topic {name!r}: {error.message}{remedy}") from error


def write_task(
    options: WriteOptions, batches: Iterator[pa.RecordBatch], write: WriteIdentity | None = None
) -> Written:
    """Write what one task has, and wait until it is in the log; as a member of ``write``, if there is one."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return Written(0, 0, write)
    cluster = cluster_client(options.connection)
    output: Output = PlainOutput(options, cluster) if write is None else MemberOutput(options, cluster, write)
    try:
        with output:
            task = _Task(options, output, cluster)
            task.add(first)
            for batch in batches:
                if batch.num_rows:
                    task.add(batch)
            task.flush()
            output.finish()
    except AlreadyCommitted:
        return Written(0, 0, write, is_passed_over=True)
    return Written(task.records_count, task.batching.batches_count, write, output.producer_id)


class BatchWriter(StartsTasks, DataSourceArrowWriter):  # type: ignore[misc]  # Spark's has no types
    """``df.write``. ``write`` is None at least once."""

    def __init__(self, options: WriteOptions, write: WriteIdentity | None = None) -> None:
        self._options = options
        self._write = write

    def write(self, iterator: Iterator[Any]) -> Written:
        return write_task(self._options, iterator, self._write)

    def commit(self, messages: list[Any]) -> None:
        _commit(self._options, self._write, messages)

    def abort(self, messages: list[Any]) -> None:
        _abort(self._options, self._write, messages)


class StreamWriter(StartsTasks, DataSourceStreamArrowWriter):  # type: ignore[misc]  # Spark's has no types
    """``df.writeStream``. Its commits and aborts get another object than its tasks."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> Written:
        wanted = self._options.exactly_once
        return write_task(self._options, iterator, None if wanted is None else stream_identity(wanted))

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 (Spark's name)
        _commit(self._options, _write_of(messages), messages)

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803 (Spark's name)
        """If all tasks failed, no message names the write. Its members have withdrawn, or are aborted for
        their silence.
        """
        _abort(self._options, _write_of(messages), messages)


def batch_writer(schema: Any, options: WriteOptions, *, overwrite: bool) -> BatchWriter:
    """Checks what can be checked on the driver: ConfigError, KafkaError or WriteFailed before anything is
    written.
    """
    if overwrite:
        raise ConfigError(
            "save mode overwrite is not allowed for sparklog: a log is only appended to; use mode('append')"
        )
    check_schema(schema, has_topic_option=options.topic is not None)
    if options.topic is not None:
        existing_topic(cluster_client(options.connection), options.topic, options)
    if options.exactly_once is None:
        return BatchWriter(options)
    check_served(cluster_client(options.connection))
    return BatchWriter(options, batch_identity(options.exactly_once))


def stream_writer(schema: Any, options: WriteOptions) -> StreamWriter:
    """Made anew for every micro-batch and for every commit, so it asks the cluster nothing."""
    check_schema(schema, has_topic_option=options.topic is not None)
    if options.exactly_once is not None and options.exactly_once.app_id is not None:
        raise ConfigError(
            "options txnAppId and txnVersion are for batch writes: a stream has the query's id and the "
            "batch's number; leave them out"
        )
    return StreamWriter(options)


def _write_of(messages: list[Any]) -> WriteIdentity | None:
    """The atomic write of a micro-batch, which its tasks alone know."""
    return next((message.write for message in messages if isinstance(message, Written)), None)


def _commit(options: WriteOptions, write: WriteIdentity | None, messages: list[Any]) -> None:
    """At least once, everything is in the log already."""
    written = [message for message in messages if isinstance(message, Written)]
    winners = [message.producer_id for message in written if message.producer_id != NO_PRODUCER_ID]
    if write is not None and (winners or not write.is_plain):
        cluster = cluster_client(options.connection)
        done = commit_write(cluster, write, winners, timeout_ms=options.delivery_timeout_ms)
        if done is Commit.before:
            logger.warning("%s is passed over: it, or a later version, was committed before", write)
            return
    logger.debug("%d records written by %d tasks", sum(w.records_count for w in written), len(written))


def _abort(options: WriteOptions, write: WriteIdentity | None, messages: list[Any]) -> None:
    records = sum(message.records_count for message in messages if isinstance(message, Written))
    if write is None and options.exactly_once is None:
        logger.warning("a write failed; %d records of its tasks that ended well stay in the log", records)
    elif write is not None:
        try:
            abort_write(cluster_client(options.connection), write, timeout_ms=options.delivery_timeout_ms)
        except SparklogError as error:
            # Spark tells why the write failed; this would hide it.
            logger.warning("%s failed and could not be aborted now; it is soon: %s", write, error)
