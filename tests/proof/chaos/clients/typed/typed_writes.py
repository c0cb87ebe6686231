"""Atomic writes of typed rows, by what ``df.write`` is made of: plan on the driver, tasks, commit.

The driver is that of ``atomic_writes``: version after version of its app, tries, aborts, replays. A frame
keeps its columns for several versions, as one that was loaded does, while the topic's change. A write that
does not fit any more is refused before a row is sent, and the frame is made anew.
"""

import pickle
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from kafka.partitioner.default import murmur2

from chaos.clients.atomic_writes import CALL_MS, Driver, write_versions
from chaos.clients.client_parts import REQUEST_TIMEOUT_MS, Settings
from chaos.typed.columns import KEY, TOPIC, id_of, value_of_type
from histories import Writer
from histories.typed.cells import text_of
from sparklog.client.topic_schemas import describe_schemas
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.model.errors import SchemaError, SparklogError
from sparklog.model.schema.data_types import Columns
from sparklog_datasource.rows.typed_form import TypedForm, typed_arrow_schema, typed_row_type
from sparklog_datasource.writing.task import Written
from sparklog_datasource.writing.typed_target import find_target
from sparklog_datasource.writing.write_options import WriteOptions
from sparklog_datasource.writing.writer import BatchWriter

TASKS_MAX: Final = 3
ROWS_MAX: Final = 12
LOSES: Final = 0.2
"""So many tasks after the first are no winners."""
LOADED_AGAIN: Final = 0.2
"""So many writes have a frame that was made for them."""
LACKS: Final = 0.25
"""So many columns a frame does not have."""
CODECS: Final = ("none", "none", "lz4", "zstd")


def write(settings: Settings, writer: Writer) -> None:
    """One version after the other, until told to stop."""
    write_versions(settings, writer, TypedDriver)


@dataclass(frozen=True)
class _Plan:
    """A write as the driver planned it. ``ids``: which column each name of the frame stands for."""

    writer: BatchWriter
    frame: TypedForm
    ids: Mapping[str, int]


class TypedDriver(Driver):
    """Tries at versions of one app, of rows with the topic's columns."""

    _frame: Columns | None = None

    def _write_rows(self, identity: WriteIdentity) -> list[int]:
        plan = self._plan(identity)
        winners = []
        for number in range(self._rng.randint(1, TASKS_MAX)):
            is_winner = number == 0 or self._rng.random() >= LOSES
            transaction = identity.run if is_winner else f"{identity.run} lost by {number}"
            done = self._task(plan, f"{identity.run}/{number}", transaction)
            if is_winner and not done.is_passed_over:
                winners.append(done.producer_id)
        return winners

    def _plan(self, identity: WriteIdentity) -> _Plan:
        """SchemaError for a frame that does not fit the topic any more."""
        if self._frame is None or self._rng.random() < LOADED_AGAIN:
            self._frame = self._loaded()
        frame = TypedForm.whole(self._frame)
        options = WriteOptions.of(self._options())
        try:
            target, _ = find_target(options, TOPIC, typed_row_type(frame))
        except SchemaError:
            self._frame = None
            raise
        if target is None:
            raise SparklogError(f"topic {TOPIC!r} is not typed")
        ids = {field.name: id_of(field.name, field.id) for field in target.written.given}
        return _Plan(BatchWriter(options, identity, target), frame, ids)

    def _loaded(self) -> Columns:
        """The topic's columns now, or most of them."""
        document = describe_schemas(self._cluster, [TOPIC])[TOPIC]
        columns = document.at(document.version)
        return tuple(one for one in columns if one.name == KEY or self._rng.random() >= LACKS)

    def _options(self) -> Mapping[str, str]:
        return {
            **self._settings.access.spark(),
            "topic": TOPIC,
            "kafka.compression.type": self._rng.choice(CODECS),
            "kafka.request.timeout.ms": str(REQUEST_TIMEOUT_MS),
            "kafka.max.block.ms": str(CALL_MS),
            "kafka.delivery.timeout.ms": str(CALL_MS),
        }

    def _task(self, plan: _Plan, session: str, transaction: str) -> Written:
        """One task, which gets the writer as Spark gives it: pickled. What it wrote is in the log, or it
        raises.
        """
        ops: list[int] = []
        batches = [self._batch(plan, session, transaction, ops) for _ in range(self._rng.randint(1, 2))]
        try:
            done: Written = pickle.loads(pickle.dumps(plan.writer)).write(iter(batches))
        except SparklogError as error:
            self._unknown(ops, error)
            raise
        if done.is_passed_over:  # the task found no write to join, and had sent nothing yet
            for op in ops:
                self._writer.failed(self._settings.name, op, "the version was committed before")
        else:
            for op in ops:
                self._writer.sent(self._settings.name, op)
        return done

    def _unknown(self, ops: Sequence[int], error: object) -> None:
        for op in ops:
            self._writer.unknown(self._settings.name, op, error)

    def _batch(self, plan: _Plan, session: str, transaction: str, ops: list[int]) -> pa.RecordBatch:
        rows = [self._row(plan, session, transaction, ops) for _ in range(self._rng.randint(1, ROWS_MAX))]
        return pa.RecordBatch.from_pylist(rows, schema=typed_arrow_schema(plan.frame))

    def _row(self, plan: _Plan, session: str, transaction: str, ops: list[int]) -> dict[str, Any]:
        """A row, and in the history that it is sent. Kafka's hash of its key says where it goes."""
        time.sleep(self._pace.next_in_s())
        number = len(ops)
        name = f"{TOPIC}/{session}/{number}"
        row: dict[str, Any] = {KEY: name}
        for column in plan.frame.columns:
            if column.name != KEY:
                row[column.name] = value_of_type(column.type, self._rng)
        cells = {
            plan.ids[column]: text_of(value)
            for column, value in row.items()
            if column != KEY and value is not None
        }
        partition = (murmur2(name.encode()) & 0x7FFFFFFF) % self._settings.topics[TOPIC]
        op = self._writer.send(
            self._settings.name,
            TOPIC,
            partition,
            name,
            acks="all",
            session=session,
            seq=number,
            idempotent=True,
            transaction=transaction,
            cells=cells,
        )
        ops.append(op)
        return row
