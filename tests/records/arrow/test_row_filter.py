"""Conditions judged on columns of Arrow; tests/datasource/test_spark_where.py compares them with Spark's."""

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from sparklog.model.schema.data_types import Columns
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.new_schema import new_schema
from sparklog.model.schema.predicates.parser import parse_condition
from sparklog.records.arrow.arrow_types import arrow_type
from sparklog.records.arrow.row_filter import judged
from tests.records.arrow.condition_strategies import conditions

NAN, INF = math.nan, math.inf


def judge(ddl: str, values: list[Any], text: str) -> list[bool | None]:
    """Of a table with one column, c."""
    (column,) = columns = new_schema(parse_ddl(f"c {ddl}")).at(1)
    found: list[bool | None] = judged(
        parse_condition(text, columns), {column.id: pa.array(values, arrow_type(column.type))}
    ).to_pylist()
    return found


@pytest.mark.parametrize(
    ("ddl", "values", "text", "expected"),
    [
        ("double", [1.0, NAN, INF, None], "c > 5", [False, True, True, None]),
        ("double", [1.0, NAN, INF, None], "c <= 5", [True, False, False, None]),
        ("double", [1.0, NAN, None], "c = 'NaN'", [False, True, None]),
        ("double", [1.0, NAN, None], "c <= 'NaN'", [True, True, None]),
        ("double", [1.0, NAN, None], "c < 'NaN'", [True, False, None]),
        ("double", [1.0, NAN, None], "c > 'NaN'", [False, False, None]),
        ("double", [1.0, NAN, None], "c != 1", [False, True, None]),
        ("double", [1.0, NAN, None], "c in (1, 'NaN')", [True, True, None]),
        ("double", [-0.0, 0.0], "c = 0 and c = -0.0 and c in (0)", [True, True]),
        ("float", [0.1, NAN], "c = 0.1", [False, False]),  # Spark compares both as doubles
        ("float", [0.5, NAN], "c in (0.5)", [True, False]),
        ("boolean", [True, False, None], "c", [True, False, None]),
        ("boolean", [True, False, None], "c < true", [False, True, None]),
        ("boolean", [True, False, None], "c in (false)", [False, True, None]),
        ("bigint", [1, None], "not c in (2, 3)", [True, None]),
        ("bigint", [1, None], "c is null or c > 0", [True, True]),
        ("bigint", [1, None], "c > 5 or c is null", [False, True]),
        ("bigint", [1, 9, None], "c > 5 and c < 7", [False, False, None]),
        ("bigint", [2**63 - 1, -(2**63)], "c = 9223372036854775807", [True, False]),
        ("string", ["a", "Z", "ä", "", None], "c >= 'a'", [True, False, True, False, None]),
        ("string", ["xy", "yx", None], "c like 'x%'", [True, False, None]),
        ("string", ["xy", "yx", None], "c not like 'x%'", [False, True, None]),
        ("string", ["\U0001f600", "\uffff"], "c > '\uffff'", [True, False]),  # by bytes, not by UTF-16
        ("binary", [b"\xff", b"\x7f", b""], "c > X'7f'", [True, False, False]),
        ("decimal(9,2)", [Decimal("-1.50"), Decimal("1.5")], "c < -1.49", [True, False]),
        ("decimal(38,0)", [Decimal(10**37), None], f"c in ({10**37})", [True, None]),
        ("date", [0, -1], "c < '1970-01-01'", [False, True]),
        ("timestamp", [0, 1], "c > '1970-01-01T00:00:00Z'", [False, True]),
        ("timestamp_ntz", [0, 1], "c > '1970-01-01 00:00'", [False, True]),
    ],
)
def test_values_are_compared_as_spark_compares_them(
    ddl: str, values: list[Any], text: str, expected: list[bool | None]
) -> None:
    assert judge(ddl, values, text) == expected


@given(drawn=conditions())
def test_every_drawn_condition_is_judged_and_its_opposite_is_the_opposite(
    drawn: tuple[Columns, pa.Table, str],
) -> None:
    columns, table, text = drawn
    arrays = {field.id: table.column(field.name).combine_chunks() for field in columns}
    found = judged(parse_condition(text, columns), arrays).to_pylist()
    opposite = judged(parse_condition(f"not ({text})", columns), arrays).to_pylist()
    assert opposite == [None if one is None else not one for one in found]
