"""Bounds of columns in a batch's header, and which batches a condition passes over by them."""

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.model.schema.data_types import Columns
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.new_schema import new_schema
from sparklog.model.schema.predicates.parser import parse_condition
from sparklog.records.arrow import header as headers
from sparklog.records.arrow.arrow_types import arrow_type
from sparklog.records.arrow.column_bounds import TEXT_BYTES_MAX, Bounds, bounds_of
from sparklog.records.arrow.envelope_crc import header_crc
from sparklog.records.arrow.header import ArrowHeader, parse_arrow_header
from sparklog.records.arrow.row_filter import judged
from sparklog.records.arrow.skipping import may_keep
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.arrow.typed_payload import typed_batch
from sparklog.records.envelope import ENVELOPE_BYTES
from tests.records.arrow.condition_strategies import conditions

NAN, INF = math.nan, math.inf
LARGE = 1 << 20
"""Bytes of a message beside which bounds are small."""


def bounds(kind: pa.DataType, *values: Any, message_bytes: int = LARGE) -> Bounds | None:
    return bounds_of({1: pa.array(values, kind)}, message_bytes).get(1)


def whole(number: int, size: int = 8) -> bytes:
    return number.to_bytes(size, "little", signed=True)


@pytest.mark.parametrize(
    ("kind", "values", "least", "greatest"),
    [
        (pa.int8(), [3, None, -2], whole(-2), whole(3)),
        (pa.int64(), [-(2**63), 2**63 - 1], whole(-(2**63)), whole(2**63 - 1)),
        (pa.bool_(), [True, None], whole(1), whole(1)),
        (pa.date32(), [-1, 5], whole(-1), whole(5)),
        (pa.timestamp("us", "UTC"), [-1, 5], whole(-1), whole(5)),
        (pa.decimal128(38, 2), [Decimal("-1.5"), Decimal(10**35)], whole(-150, 16), whole(10**37, 16)),
        (pa.string(), ["b", "ä", None], b"b", "ä".encode()),
        (pa.string(), ["", ""], b"", b""),
        (pa.binary(), [b"a" * 99, b"b" * 99], b"a" * 64, b"b" * 63 + b"c"),
        (pa.binary(), [b"a", b"b" + b"\xff" * 99], b"a", b"c"),
        (pa.binary(), [b"a", b"\xff" * 65], b"a", None),
    ],
)
def test_bounds_are_numbers_or_the_beginnings_of_texts(
    kind: pa.DataType, values: list[Any], least: bytes, greatest: bytes | None
) -> None:
    assert bounds(kind, *values) == Bounds(least, greatest)


def test_some_columns_and_small_batches_have_no_bounds() -> None:
    assert bounds(pa.float64(), 1.0, -INF) is not None
    assert bounds(pa.float64(), 1.0, NAN) is None
    assert bounds(pa.float32(), None, NAN) is None
    assert bounds(pa.int64(), None, None) is None
    assert bounds(pa.list_(pa.int64()), [1], [2]) is None
    assert bounds(pa.int64(), 1) is None, "a single row"
    assert bounds(pa.int64(), 1, 2, message_bytes=160) is not None
    assert bounds(pa.int64(), 1, 2, message_bytes=159) is None, "more than a tenth of the message"


@given(values=st.lists(st.binary(max_size=2 * TEXT_BYTES_MAX), min_size=2))
def test_every_text_lies_within_the_bounds(values: list[bytes]) -> None:
    found = bounds(pa.binary(), *values)
    assert found is not None
    assert found.least is not None
    assert all(found.least <= value for value in values)
    assert found.greatest is None or all(value <= found.greatest for value in values)


def header_of(columns: Columns, table: pa.Table) -> ArrowHeader:
    """Of the batch that a writer makes of the rows."""
    version = TopicColumns(new_schema(columns)).newest
    present = {field.id: table.column(field.name).combine_chunks() for field in columns}
    return parse_arrow_header(typed_batch(present, table.num_rows, version, now_ms=5)[ENVELOPE_BYTES:])


@given(drawn=conditions())
def test_no_batch_with_a_row_that_is_wanted_is_passed_over(drawn: tuple[Columns, pa.Table, str]) -> None:
    columns, table, text = drawn
    # So many rows that bounds are less than a tenth of the batch.
    table = pa.concat_tables([table] * 100)
    condition = parse_condition(text, columns)
    arrays = {field.id: table.column(field.name).combine_chunks() for field in columns}
    if not may_keep(condition, header_of(columns, table)):
        assert not any(judged(condition, arrays).to_pylist())


@pytest.mark.parametrize(
    ("ddl", "values", "passed_over", "looked_at"),
    [
        (
            "bigint", [2, 4, None],
            "c < 2|c <= 1|c > 4|c >= 5|c = 1|c = 5|c in (1, 5)|c between 5 and 9|not c between 2 and 4"
            "|c > 4 and c is null|c > 4 or c < 2",
            "c < 3|c <= 2|c > 3|c >= 4|c = 3|c != 2|c in (1, 3)|c not in (2, 3)|c is null|c is not null"
            "|c > 4 or c is null",
        ),
        ("bigint", [3, 3], "c != 3|c not in (2, 3)|c is null", "c = 3|c is not null"),
        ("bigint", [None, None], "c = 3|c != 3|c not in (3)|c is not null", "c is null"),
        (
            "double", [1.5, 2.5],
            "c = 'NaN'|c > 'NaN'|c >= 'NaN'|c in ('NaN', 3)|c > 2.5",
            "c < 'NaN'|c <= 'NaN'|c != 'NaN'|c >= 2.5",
        ),
        ("double", [1.5, NAN], "c is null", "c = 'NaN'|c > 9|c = 9|c < 0"),
        ("double", [-0.0, 0.0], "c != 0|c > 0|c < 0", "c = 0|c >= 0"),
        (
            "string", ["ba", "bc"],
            "c like 'c%'|c like 'bd%'|c not like 'b%'|c > 'bc'|c < 'ba'",
            "c like 'bb%'|c like 'b%'|c not like 'ba%'",
        ),
        ("string", ["x" * 70, "x" * 71], f"c = '{'x' * 63}y1'|c > 'y'", f"c = '{'x' * 70}'|c > '{'x' * 70}'"),
        ("binary", [b"a", b"\xff" * 70], "c < X'61'", "c > X'ffff'"),
        ("boolean", [False, False], "c|c = true|c > false", "not c|c is not null"),
        ("decimal(9,2)", [Decimal("1.5"), Decimal("2.5")], "c > 2.5|c = 1.4", "c > 2.4|c = 2"),
        ("date", [0, 1], "c > '1970-01-02'", "c >= '1970-01-02'"),
    ],
)  # fmt: skip
def test_bounds_tell_what_is_passed_over(
    ddl: str, values: list[Any], passed_over: str, looked_at: str
) -> None:
    (column,) = columns = new_schema(parse_ddl(f"c {ddl}")).at(1)
    table = pa.table({"c": pa.array(values * 200, arrow_type(column.type))})
    header = header_of(columns, table)
    for is_looked_at, texts in ((False, passed_over), (True, looked_at)):
        found = {text: may_keep(parse_condition(text, columns), header) for text in texts.split("|")}
        assert found == dict.fromkeys(found, is_looked_at)


def test_bounds_outside_the_header_are_refused() -> None:
    columns = new_schema(parse_ddl("c bigint")).at(1)
    table = pa.table({"c": pa.array(range(100), pa.int64())})
    version = TopicColumns(new_schema(columns)).newest
    payload = bytearray(
        typed_batch({1: table.column(0).combine_chunks()}, 100, version, now_ms=5)[ENVELOPE_BYTES:]
    )
    length = parse_arrow_header(payload).header_length
    place = headers.FIXED.size + headers.ADDED.size + headers.ENTRY.size - 16
    payload[place : place + 4] = (length - 7).to_bytes(4, "little")
    payload[8:12] = header_crc(payload[:length]).to_bytes(4, "little")
    with pytest.raises(CorruptBatch, match="a bound of 8 bytes at"):
        parse_arrow_header(payload)
