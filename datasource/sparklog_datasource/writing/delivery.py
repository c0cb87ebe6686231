"""How often rows are delivered, and which write a task's rows belong to.

A write is atomic (docs/exactly-once.md) unless ``delivery=at-least-once`` says otherwise, or an option of
Kafka's producer that an atomic write cannot honour, such as ``kafka.acks=1``. Its app id and version are

- of a stream: the query's id and the batch's number, so that a batch that is run again changes nothing,
- of a batch with ``txnAppId`` and ``txnVersion``: just these,
- of another batch: an id of its own, so that its own attempts are joined and nothing more.

Spark tells a stream's query and batch to tasks alone, by local properties. The driver learns them from the
messages of its tasks.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark import TaskContext

from sparklog.client.transactions.writes.write_identity import DEFAULT_TIMEOUT_MS, WriteIdentity
from sparklog.model.errors import ConfigError, SparklogError
from sparklog_datasource.options.option_parsing import Options

AT_LEAST_ONCE: Final = "at-least-once"
EXACTLY_ONCE: Final = "exactly-once"

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"
RUN_ID: Final = "spark.jobGroup.id"

APP_ID_LENGTH_MAX: Final = 900
"""Shorter than the brokers' limit, because of the prefix."""


@dataclass(frozen=True, slots=True)
class ExactlyOnce:
    """What an atomic write was asked for. ``app_id`` and ``version`` are those of the user, or None."""

    app_id: str | None
    version: int | None
    timeout_ms: int


def delivery_of(options: Options) -> ExactlyOnce | None:
    """None for at least once. ConfigError for options that contradict each other."""
    text, weak = options.text("delivery"), _weak_option(options)
    wanted = EXACTLY_ONCE if text is None else text.strip().lower()
    if wanted not in (AT_LEAST_ONCE, EXACTLY_ONCE):
        raise ConfigError(f"option delivery={text!r}: must be {EXACTLY_ONCE} or {AT_LEAST_ONCE}")
    app_id, version = options.text("txnAppId"), options.integer("txnVersion", minimum=0)
    is_named = app_id is not None or version is not None
    if wanted == AT_LEAST_ONCE:
        if is_named:
            raise ConfigError(
                f"options txnAppId and txnVersion need delivery={EXACTLY_ONCE}: set it, or leave them out"
            )
        return None
    if weak is not None:
        _allow_weak(options, weak, needs_exactly_once=text is not None or is_named)
        return None
    if (app_id is None) != (version is None):
        raise ConfigError(
            "options txnAppId and txnVersion belong together: the first names a series of writes, the second "
            "is the write's number in it, which rises"
        )
    if app_id is not None and not 0 < len(app_id) <= APP_ID_LENGTH_MAX:
        raise ConfigError(
            f"option txnAppId has {len(app_id)} characters: must be from 1 to {APP_ID_LENGTH_MAX}"
        )
    timeout_ms = options.client_integer("transaction.timeout.ms", DEFAULT_TIMEOUT_MS, minimum=1)
    return ExactlyOnce(app_id, version, timeout_ms)


def _weak_option(options: Options) -> str | None:
    """The option of Kafka's producer that an atomic write cannot honour, with its value."""
    weak: Mapping[str, tuple[str, ...]] = {"acks": ("0", "1"), "enable.idempotence": ("false",)}
    for name, values in weak.items():
        text = options.client(name)
        if text is not None and text.lower() in values:
            return f"kafka.{name}={text}"
    return None


def _allow_weak(options: Options, weak: str, *, needs_exactly_once: bool) -> None:
    if needs_exactly_once:
        raise ConfigError(
            f"option {weak} does not go with delivery={EXACTLY_ONCE}, or with txnAppId: leave it out, or set "
            f"delivery={AT_LEAST_ONCE}"
        )
    options.warn_once(
        f"option {weak}: this write is at least once, not exactly once; a task that is run again writes its "
        f"rows again. Leave the option out, or set delivery={AT_LEAST_ONCE} to say that it is meant"
    )


def batch_identity(wanted: ExactlyOnce) -> WriteIdentity:
    """A batch's write, and this run of it; made once, on the driver."""
    run = uuid.uuid4().hex
    if wanted.app_id is None or wanted.version is None:
        return WriteIdentity(f"write-{run}", 0, run, is_plain=True, timeout_ms=wanted.timeout_ms)
    app_id = f"app-{wanted.app_id}"
    return WriteIdentity(app_id, wanted.version, run, is_plain=False, timeout_ms=wanted.timeout_ms)


def stream_identity(wanted: ExactlyOnce) -> WriteIdentity:
    """A micro-batch's write, as its tasks know it; SparklogError outside of a stream's task."""
    context = _task_context()
    query_id, batch_id, run = (context.getLocalProperty(name) for name in (QUERY_ID, BATCH_ID, RUN_ID))
    if query_id is None or batch_id is None or run is None:
        raise SparklogError(
            f"delivery={EXACTLY_ONCE} needs the query's id and the batch's number, and Spark has not told "
            f"them to the task ({QUERY_ID}={query_id}, {BATCH_ID}={batch_id}, {RUN_ID}={run}); set "
            f"delivery={AT_LEAST_ONCE}"
        )
    app_id = f"query-{query_id}"
    return WriteIdentity(app_id, int(batch_id), run, is_plain=False, timeout_ms=wanted.timeout_ms)


def attempt_name() -> str:
    """Unique in the Spark application."""
    context = TaskContext.get()
    return uuid.uuid4().hex if context is None else str(context.taskAttemptId())


def _task_context() -> Any:
    context = TaskContext.get()
    if context is None:
        raise SparklogError(f"delivery={EXACTLY_ONCE} of a stream can be had in Spark's tasks alone")
    return context
