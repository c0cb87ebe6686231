"""Batch and streaming writes.

Exactly once, the default: every task attempt is a member of one atomic write (``writing``). The attempts
whose messages Spark hands to the driver win. A task without rows is no member. A plain write without rows
asks the coordinator nothing; one with a version is committed, so that the version counts as written.

At least once: every task has an idempotent producer of its own and ends when everything it sent is in the
log, so a commit has nothing left to do. A task that Spark runs again writes its rows again, as with Spark's
Kafka connector.
"""

import logging
from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter

from sparklog.client.transactions.writes.write_coordinator import check_served
from sparklog.client.transactions.writes.write_driver import Commit, abort_write, commit_write
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.client.transactions.writes.write_member import NO_PRODUCER_ID
from sparklog.model.errors import ConfigError, SparklogError
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.task_start import StartsTasks
from sparklog_datasource.writing.delivery import batch_identity, stream_identity
from sparklog_datasource.writing.planned_version import run_of_task
from sparklog_datasource.writing.task import Found, Written, write_task
from sparklog_datasource.writing.typed_target import TypedTarget, find_target
from sparklog_datasource.writing.write_options import WriteOptions
from sparklog_datasource.writing.write_schema import check_schema

logger: Final = logging.getLogger(__name__)


class BatchWriter(StartsTasks, DataSourceArrowWriter):  # type: ignore[misc]  # Spark's has no types
    """``df.write``. ``write`` is None at least once, ``target`` of an untyped topic."""

    def __init__(
        self, options: WriteOptions, write: WriteIdentity | None = None, target: TypedTarget | None = None
    ) -> None:
        self._options = options
        self._write = write
        self._target = target

    def write(self, iterator: Iterator[Any]) -> Written:
        return write_task(self._options, iterator, self._write, lambda: (self._target, None))

    def commit(self, messages: list[Any]) -> None:
        _commit(self._options, self._write, messages)

    def abort(self, messages: list[Any]) -> None:
        _abort(self._options, self._write, messages)


class StreamWriter(StartsTasks, DataSourceStreamArrowWriter):  # type: ignore[misc]  # Spark's has no types
    """``df.writeStream``. Its commits and aborts get another object than its tasks."""

    def __init__(self, options: WriteOptions, schema: Any) -> None:
        self._options = options
        self._schema = schema

    def write(self, iterator: Iterator[Any]) -> Written:
        wanted = self._options.exactly_once
        write = None if wanted is None else stream_identity(wanted)
        return write_task(self._options, iterator, write, self._find)

    def _find(self) -> Found:
        topic = self._options.topic
        if topic is None:
            return None, None
        return find_target(self._options, topic, self._schema, run_of_task())

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
    target: TypedTarget | None = None
    if options.topic is None:
        check_schema(schema, has_topic_option=False)
    else:
        target, _ = find_target(options, options.topic, schema)
    if options.exactly_once is None:
        return BatchWriter(options, target=target)
    check_served(cluster_client(options.connection))
    return BatchWriter(options, batch_identity(options.exactly_once), target)


def stream_writer(schema: Any, options: WriteOptions) -> StreamWriter:
    """Made anew for every micro-batch and for every commit, so it asks the cluster nothing: tasks do, and
    find out whether the topic of option ``topic`` is typed.
    """
    if options.topic is None:
        check_schema(schema, has_topic_option=False)
    if options.exactly_once is not None and options.exactly_once.app_id is not None:
        raise ConfigError(
            "options txnAppId and txnVersion are for batch writes: a stream has the query's id and the "
            "batch's number; leave them out"
        )
    return StreamWriter(options, schema)


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
