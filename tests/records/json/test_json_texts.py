"""JSON texts of typed rows: what Python's reader finds in them is what the rows have."""

import base64
import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.schema.data_types import Array, Columns, DataType, Map, Scalar, Struct
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.records.arrow.arrow_types import arrow_type
from sparklog.records.bridge import numbers
from sparklog.records.json.json_texts import object_texts
from sparklog.records.json.size_bounds import json_bytes_max
from tests.records.arrow.typed_strategies import tables


def texts(ddl: str, *values: list[Any]) -> list[str]:
    columns = parse_ddl(ddl)
    arrays = [pa.array(own, arrow_type(column.type)) for own, column in zip(values, columns, strict=True)]
    found: list[str] = object_texts(columns, arrays, len(arrays[0])).to_pylist()
    return found


def expected_object(columns: Columns, row: dict[str, Any]) -> dict[str, Any]:
    return {
        column.name: expected(row[column.name], column.type)
        for column in columns
        if row[column.name] is not None
    }


def expected(value: Any, data_type: DataType) -> Any:
    match data_type:
        case _ if value is None:
            return None
        case Array(element):
            return [expected(one, element) for one in value]
        case Map(key, of_value):
            return {key_of(one, key): expected(other, of_value) for one, other in value}
        case Struct(fields):
            return expected_object(fields, value)
        case Scalar(name):
            return expected_scalar(value, name)


def expected_scalar(value: Any, name: str) -> Any:
    match name:
        case "binary":
            return base64.b64encode(value).decode()
        case "date":
            return value.isoformat()
        case "timestamp":
            return value.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        case "timestamp_ntz":
            return value.isoformat(timespec="microseconds")
        case "float" | "double" if not math.isfinite(value):
            return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    return value


def key_of(value: Any, data_type: DataType) -> str:
    found = expected(value, data_type)
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, float):
        return f"float {found!r}"
    return f"decimal {found:f}" if isinstance(found, Decimal) else str(found)


def as_read(value: Any, data_type: DataType) -> Any:
    """What was read, with numbers of their types, and keys that tell which they have."""
    match data_type:
        case Array(element) if value is not None:
            return [as_read(one, element) for one in value]
        case Map(key, of_value) if value is not None:
            return {key_read(one, key): as_read(other, of_value) for one, other in value.items()}
        case Struct(fields) if value is not None:
            types = {field.name: field.type for field in fields}
            return {name: as_read(one, types[name]) for name, one in value.items()}
        case Scalar("float" | "double") if isinstance(value, Decimal | int):
            found = float(value)
            return pa.array([found], pa.float32())[0].as_py() if data_type.name == "float" else found
        case Scalar("decimal") if value is not None:
            return Decimal(value)
    return value


def key_read(text: str, data_type: DataType) -> str:
    match data_type:
        case Scalar("float" | "double") if not text.endswith(("NaN", "Infinity")):
            return f"float {as_read(Decimal(text), data_type)!r}"
        case Scalar("decimal"):
            return f"decimal {Decimal(text):f}"
    return text


@settings(deadline=None, max_examples=60)
@given(drawn=tables(), start=st.integers(0, 5))
def test_every_row_is_one_object_of_the_present_fields(drawn: Any, start: int) -> None:
    topic, rows = drawn
    rows = rows.slice(min(start, rows.num_rows - 1))
    columns = topic.newest.columns
    found = object_texts(columns, rows.columns, rows.num_rows)
    assert len(found) == rows.num_rows
    assert sum(len(text.encode()) for text in found.to_pylist()) <= json_bytes_max(
        columns, rows.columns, rows.num_rows
    )
    for text, row in zip(found.to_pylist(), rows.to_pylist(), strict=True):
        read = json.loads(text, parse_float=Decimal)
        assert list(read) == [column.name for column in columns if row[column.name] is not None]
        got = as_read(read, Struct(columns))
        assert repr(got) == repr(expected_object(columns, row))


def test_null_fields_are_left_out_and_null_elements_are_not() -> None:
    assert texts(
        "a int, l array<int>, m map<string, int>, s struct<x: int, y: int>, b int",
        [1, None, None],
        [[1, None], [], None],
        [[("k", None)], [], None],
        [{"x": None, "y": 2}, {"x": None, "y": None}, None],
        [2, 3, None],
    ) == ['{"a":1,"l":[1,null],"m":{"k":null},"s":{"y":2},"b":2}', '{"l":[],"m":{},"s":{},"b":3}', "{}"]


def test_fields_stay_in_their_order_whichever_of_them_have_nulls() -> None:
    assert texts("a int, b int, c int, d int", [None, 1], [2, 2], [3, None], [4, 4]) == [
        '{"b":2,"c":3,"d":4}',
        '{"a":1,"b":2,"d":4}',
    ]


def test_names_and_texts_are_escaped() -> None:
    names = ['a"b', "c\\d", "e\nf\x01", "ü 😀"]
    every_control = "".join(map(chr, range(0x20)))
    columns = ", ".join(f"`{name}` string" for name in names)
    (text,) = texts(columns, ['q"'], ["\\n"], [every_control], ["ü 😀\x7f\u2028"])
    assert json.loads(text) == dict(zip(names, ['q"', "\\n", every_control, "ü 😀\x7f\u2028"], strict=True))
    assert all(character >= " " for character in text)


@pytest.mark.parametrize("kind", ["float", "double"])
def test_numbers_that_json_lacks_are_strings_and_the_zero_below_zero_keeps_its_point(kind: str) -> None:
    values = [math.nan, math.inf, -math.inf, -0.0, 0.0, 1e30 if kind == "double" else 1.0]
    assert texts(f"x {kind}", values)[:5] == [
        '{"x":"NaN"}',
        '{"x":"Infinity"}',
        '{"x":"-Infinity"}',
        '{"x":-0.0}',
        '{"x":0}',
    ]


def test_keys_of_maps_are_strings_of_any_type() -> None:
    at = datetime.datetime.fromisoformat("2024-02-29T12:00:00")
    ddl = "a map<int, int>, b map<timestamp_ntz, int>, c map<struct<x: string>, int>, d map<double, int>"
    values = [[[(-7, 1)]], [[(at, 1)]], [[({"x": "y"}, 1)]], [[(math.nan, 1)]]]
    assert texts(ddl, *values) == [
        '{"a":{"-7":1},"b":{"2024-02-29T12:00:00.000000":1},"c":{"{\\"x\\":\\"y\\"}":1},"d":{"NaN":1}}'
    ]


def test_years_beyond_arrows_texts_are_written() -> None:
    import numpy as np

    days = numbers(np.array([2**31 - 1, -(2**31), 11248738], np.int32)).view(pa.date32())
    times = numbers(np.array([2**63 - 1, -(2**63), 2**62])).view(pa.timestamp("us"))
    assert object_texts(parse_ddl("d date, t timestamp_ntz"), [days, times], 3).to_pylist() == [
        '{"d":"5881580-07-11","t":"294247-01-10T04:00:54.775807"}',
        '{"d":"-5877641-06-23","t":"-290308-12-21T19:59:05.224192"}',
        '{"d":"32768-01-01","t":"148108-07-06T14:00:27.387904"}',
    ]
