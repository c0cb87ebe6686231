"""Conditions that hypothesis draws for drawn rows: text that is Spark's SQL and option ``where`` alike."""

import math
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from sparklog.model.schema.data_types import Columns, Field, Scalar
from sparklog.model.schema.new_schema import new_schema
from sparklog.records.arrow.arrow_types import arrow_type
from tests.records.arrow.typed_strategies import scalar_values, scalars

ROW = "n"
"""The column with a row's number, which comes first."""


@st.composite
def conditions(draw: st.DrawFn) -> tuple[Columns, pa.Table, str]:
    """Columns with ids, some rows of them, and the text of a condition on them."""
    drawn = draw(st.lists(scalars, min_size=1, max_size=4))
    fields = tuple(Field(f"c{nth}", kind) for nth, kind in enumerate(drawn))
    count = draw(st.integers(1, 8))
    lists = [
        draw(st.lists(st.none() | scalar_values(kind), min_size=count, max_size=count)) for kind in drawn
    ]
    columns = new_schema((Field(ROW, Scalar("bigint")), *fields)).at(1)
    arrays = [pa.array(range(count), pa.int64())]
    arrays += [pa.array(values, arrow_type(field.type)) for field, values in zip(fields, lists, strict=True)]
    term = st.one_of([terms(field, values) for field, values in zip(fields, lists, strict=True)])
    table = pa.Table.from_arrays(arrays, names=[column.name for column in columns])
    return columns, table, draw(st.recursive(term, joined, max_leaves=6))


def joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(parts, parts).map(lambda pair: f"({pair[0]}) and ({pair[1]})"),
        st.tuples(parts, parts).map(lambda pair: f"{pair[0]} or {pair[1]}"),
        parts.map(lambda one: f"not ({one})"),
    )


def terms(field: Field, values: list[Any]) -> st.SearchStrategy[str]:
    """Comparisons, half of them with a value that a row has."""
    assert isinstance(field.type, Scalar)
    name = field.type.name
    there = [value for value in values if value is not None]
    literal = (st.sampled_from(there) | scalar_values(field.type)) if there else scalar_values(field.type)
    written = literal.map(lambda value: text_of(name, value))
    numbers = literal.filter(lambda value: not isinstance(value, float) or math.isfinite(value))
    listed = st.lists(numbers.map(lambda value: text_of(name, value)), min_size=1, max_size=4).map(", ".join)
    sign = st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">="])
    found = [
        st.tuples(sign, written).map(lambda pair: f"{field.name} {pair[0]} {pair[1]}"),
        st.tuples(sign, written).map(lambda pair: f"{pair[1]} {pair[0]} `{field.name}`"),
        st.tuples(written, written).map(lambda pair: f"{field.name} between {pair[0]} and {pair[1]}"),
        st.tuples(written, written).map(lambda pair: f"{field.name} not between {pair[0]} and {pair[1]}"),
        listed.map(lambda values: f"{field.name} in ({values})"),
        listed.map(lambda values: f"{field.name} not in ({values})"),
        st.sampled_from([f"{field.name} is null", f"{field.name} is not null"]),
    ]
    if name == "boolean":
        found.append(st.just(field.name))
    if name == "string":
        begins = literal.map(lambda text: text[:2]).filter(lambda text: not set(text) & set("%_\\"))
        found.append(begins.map(lambda text: f"{field.name} like {text_of(name, text + '%')}"))
    return st.one_of(found)


def text_of(name: str, value: Any) -> str:
    """The value as a literal of Spark's SQL."""
    match name:
        case "float" | "double" if math.isnan(value):
            return "'NaN'"
        case "float" | "double" if math.isinf(value):
            return "'Infinity'" if value > 0 else "'-Infinity'"
        case "decimal":
            return format(value, "f")
        case "string":
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case "binary":
            return f"X'{value.hex()}'"
        case "date" | "timestamp" | "timestamp_ntz":
            return f"'{value.isoformat()}'"
    return str(value).lower()
