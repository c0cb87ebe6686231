"""Bugs of batches that are passed over because no row of them is wanted, each with the check that finds it.

What is checked is a batch as its writer makes it, a replica that judges it, and a reader that goes on where
the answer says: simulated rows have neither texts nor NaN.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from simulation.mutants.mutant import Switch
from simulation.mutants.security.checked_mutant import CheckedMutant
from sparklog.broker.conversion import cut_columns
from sparklog.broker.conversion.converting_reader import ConvertingReader
from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.client.fetched import Fetched
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.parts import read_parts
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.new_schema import new_schema
from sparklog.model.schema.predicates.parser import parse_condition
from sparklog.records.arrow import column_bounds as bounds
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.arrow.typed_payload import typed_batch
from sparklog.records.envelope import split, stamp
from sparklog.records.typed_decoding import TypedReading

_TOPIC: Final = TopicColumns(new_schema(parse_ddl("id bigint, mag double, place string")))
_PLACE: Final = TopicPartition("t", 0)
_ROWS: Final = 60
"""Of a batch: so many that its bounds are less than a tenth of it."""


def _reading(text: str) -> TypedReading:
    columns = _TOPIC.newest.columns
    condition = parse_condition(text, columns)
    return TypedReading(_TOPIC, columns[:1], with_times=False, where=condition, where_version=1)


class _Log:
    """A replica's log, as far as consumers may read it: ``committed`` batches."""

    def __init__(self, *batches: dict[str, Sequence[Any]]) -> None:
        kinds = {1: ("id", pa.int64()), 2: ("mag", pa.float64()), 3: ("place", pa.string())}
        self._batches: list[bytes] = []
        for nth, rows in enumerate(batches):
            present = {
                number: pa.array([*rows[name]] * (_ROWS // len(rows[name])), kind)
                for number, (name, kind) in kinds.items()
                if name in rows
            }
            batch = bytearray(typed_batch(present, _ROWS, _TOPIC.newest, now_ms=1_000))
            stamp(batch, 0, nth * _ROWS, 0)
            self._batches.append(bytes(batch))
        self.committed = len(batches)
        self.end_offset = len(batches) * _ROWS
        self.reads = self

    def read(self, request: ReadRequest, **_: Any) -> ReadResult:
        first = request.fetch_offset // _ROWS
        parts = tuple(self._batches[first : self.committed])
        size_bytes = sum(map(len, parts))
        return ReadResult(ErrorCode.none, parts, size_bytes, next_offset=self.committed * _ROWS)

    def fetch(self, reading: TypedReading, offset: int) -> Fetched:
        """One fetch of a reader with a condition."""
        asked = ReadRequest(offset, 1 << 20, columns=reading.named_ids, condition=reading.packed_condition)
        cutting: Any = cut_columns.CutColumns()
        result = cutting.take(ConvertingReader(1 << 20), self, asked, self.read(asked))
        data = read_parts(result.parts)
        return Fetched(_PLACE, offset, data, split(data), typed=reading, looked_to=result.looked_to)


def _ids(fetched: Fetched) -> set[int]:
    return {number for rows in fetched.rows() for number in rows.column("id").to_pylist()}


def _cut_bounds_short(switch: Switch) -> None:
    """A writer keeps the first bytes of the greatest text, as it does of the least."""
    switch.instead(bounds, "_rounded_up", lambda text: text[: bounds.TEXT_BYTES_MAX])


def _check_long_texts() -> None:
    log = _Log({"id": [1], "place": ["x" * 100]})
    found = _ids(log.fetch(_reading(f"place > '{'x' * 80}'"), 0))
    assert found == {1}, f"a text above the condition's is among the rows, and {found} are read"


def _pass_over_nan(switch: Switch) -> None:
    """A writer takes the bounds of the other numbers, as Arrow's ``min_max`` gives them."""
    switch.instead(bounds, "_has_nan", lambda column: False)


def _check_nan() -> None:
    log = _Log({"id": [1, 2], "mag": [1.0, math.nan]})
    found = _ids(log.fetch(_reading("mag > 5"), 0))
    assert found == {2}, f"NaN is greater than all, and of its row {found} is read"


def _look_to_the_logs_end(switch: Switch) -> None:
    """A replica says that it has looked as far as its log goes, and not as far as this reader may read."""

    def make(take: Any) -> Any:
        def take_to_the_end(self: Any, converter: Any, partition: Any, read: Any, result: Any) -> Any:
            return take(self, converter, partition, read, result)._replace(looked_to=partition.end_offset)

        return take_to_the_end

    switch.method(cut_columns.CutColumns, "take", make)


def _check_what_is_committed_later() -> None:
    log = _Log({"id": [1]}, {"id": [2]}, {"id": [3]})
    log.committed = 1
    wanted = _reading("id >= 2")
    first = log.fetch(wanted, 0)
    log.committed = 3
    found = _ids(first) | _ids(log.fetch(wanted, first.next_offset))
    assert found == {2, 3}, f"rows that were committed after the first fetch: {found} are read"


PASSED_OVER: Final = (
    CheckedMutant(
        "bounds-are-cut-without-rounding-up",
        "a greatest value that is a prefix",
        "a batch with a long text is passed over, and its rows are missing",
        _cut_bounds_short,
        _check_long_texts,
    ),
    CheckedMutant(
        "bounds-pass-over-nan",
        "statistics of columns with NaN",
        "a batch with a NaN is passed over, and its row is missing",
        _pass_over_nan,
        _check_nan,
    ),
    CheckedMutant(
        "batches-are-passed-over-beyond-the-readers-limit",
        "an answer that says how far the log goes",
        "a reader skips what is committed a moment later",
        _look_to_the_logs_end,
        _check_what_is_committed_later,
    ),
)
