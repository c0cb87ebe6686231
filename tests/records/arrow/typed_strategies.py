"""Typed rows that hypothesis draws: columns, and values of their types."""

import datetime
import decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from sparklog.model.schema.data_types import Array, Columns, DataType, Field, Map, Scalar, Struct
from sparklog.model.schema.new_schema import new_schema
from sparklog.records.arrow.arrow_types import arrow_type
from sparklog.records.arrow.topic_columns import TopicColumns

NAMES = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
]
_INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_UTC = datetime.UTC
_TIMES = st.datetimes(
    datetime.datetime.fromisoformat("1900-01-01"), datetime.datetime.fromisoformat("2200-01-01")
)


def scalar_values(scalar: Scalar) -> st.SearchStrategy[Any]:
    if scalar.name in _INTEGERS:
        bits = _INTEGERS[scalar.name]
        return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    match scalar.name:
        case "boolean":
            return st.booleans()
        case "float":
            return st.floats(width=32)
        case "double":
            return st.floats()
        case "decimal":
            digits = st.integers(-(10**scalar.precision) + 1, 10**scalar.precision - 1)
            context = decimal.Context(prec=38)
            return digits.map(lambda number: context.scaleb(decimal.Decimal(number), -scalar.scale))
        case "string":
            return st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
        case "binary":
            return st.binary(max_size=6)
        case "date":
            return st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
        case "timestamp":
            return _TIMES.map(lambda time: time.replace(tzinfo=_UTC))
    return _TIMES


def values(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case Scalar():
            return scalar_values(data_type)
        case Array(element):
            return st.lists(st.none() | values(element), max_size=3)
        case Map(key, value):
            return st.lists(st.tuples(values(key), st.none() | values(value)), max_size=3)
        case Struct(fields):
            return st.fixed_dictionaries({field.name: st.none() | values(field.type) for field in fields})


scalars = st.sampled_from([Scalar(name) for name in NAMES]) | st.builds(
    lambda precision, behind: Scalar("decimal", precision, min(behind, precision)),
    st.integers(1, 38),
    st.integers(0, 38),
)


def fields_of(types: st.SearchStrategy[DataType]) -> Any:
    return st.lists(types, min_size=1, max_size=4).map(
        lambda drawn: tuple(Field(f"c{nth}", one) for nth, one in enumerate(drawn))
    )


data_types = st.recursive(
    scalars,
    lambda parts: (
        st.builds(Array, parts) | st.builds(Map, scalars, parts) | st.builds(Struct, fields_of(parts))
    ),
    max_leaves=5,
)
columns = fields_of(data_types)


@st.composite
def tables(draw: st.DrawFn) -> tuple[TopicColumns, pa.RecordBatch]:
    """A topic with drawn columns, and some rows for it."""
    drawn: Columns = draw(columns)
    count = draw(st.integers(1, 6))
    arrays = [
        pa.array(
            draw(st.lists(st.none() | values(field.type), min_size=count, max_size=count)),
            arrow_type(field.type),
        )
        for field in drawn
    ]
    return TopicColumns(new_schema(drawn)), pa.RecordBatch.from_arrays(
        arrays, [field.name for field in drawn]
    )
