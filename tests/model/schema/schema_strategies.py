"""Columns that hypothesis draws, and their DDL written in many ways."""

from typing import Any

from hypothesis import strategies as st

from sparklog.model.schema.data_types import (
    SCALAR_NAMES,
    Array,
    Columns,
    DataType,
    Field,
    Map,
    Scalar,
    Struct,
)
from sparklog.model.schema.new_schema import RESERVED
from sparklog.model.schema.paths import quoted

SPELLINGS = {
    "tinyint": ["tinyint", "BYTE"],
    "smallint": ["smallint", "short"],
    "int": ["int", "INTEGER"],
    "bigint": ["bigint", "Long"],
    "float": ["float", "real"],
    "timestamp": ["timestamp", "timestamp_ltz"],
    "timestamp_ntz": ["timestamp_ntz", "TIMESTAMP WITHOUT TIME ZONE"],
    "string": ["string", "STRING COLLATE UTF8_BINARY"],
}
BLANKS = [" ", "  ", "\n", "\t", " /* a /* b */ */ ", " -- x\n", "\u00a0"]

words = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True) | st.sampled_from(
    ["select", "not", "null", "comment", "array", "struct", "1a", "0x", "é", "a b", "a`b", "a-b", "1d", "7"]
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def decimals(draw: st.DrawFn) -> Scalar:
    precision = draw(st.integers(1, 38))
    return Scalar("decimal", precision, draw(st.integers(0, precision)))


scalars = st.sampled_from([Scalar(name) for name in SCALAR_NAMES if name != "decimal"]) | decimals()


def fields_of(types: st.SearchStrategy[DataType], names: st.SearchStrategy[str]) -> Any:
    return st.lists(
        st.builds(Field, names, types, st.booleans(), st.just("") | texts),
        min_size=1,
        max_size=4,
        unique_by=lambda field: field.name.lower(),
    ).map(tuple)


def made_of(parts: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    return (
        st.builds(Array, parts) | st.builds(Map, scalars, parts) | st.builds(Struct, fields_of(parts, words))
    )


data_types = st.recursive(scalars, made_of, max_leaves=6)
schemas: st.SearchStrategy[Columns] = fields_of(
    data_types, words.filter(lambda name: name.lower() not in RESERVED)
)


@st.composite
def spelled(draw: st.DrawFn, columns: Columns) -> str:
    """DDL of the columns, as somebody may write it."""
    return ",".join(blank(draw) + field_text(draw, column, [" "]) for column in columns)


def blank(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(BLANKS))


def field_text(draw: st.DrawFn, field: Field, separators: list[str]) -> str:
    name = draw(st.sampled_from([quoted(field.name), "`" + field.name.replace("`", "``") + "`"]))
    not_null = (
        "" if field.nullable else blank(draw) + "NOT" + blank(draw) + draw(st.sampled_from(["NULL", "null"]))
    )
    quote = draw(st.sampled_from(["'", '"']))
    escaped = field.comment.replace("\\", "\\\\").replace(quote, "\\" + quote)
    comment = f" COMMENT {quote}{escaped}{quote}" if field.comment else ""
    separator = draw(st.sampled_from(separators)) + blank(draw)
    return name + separator + type_text_of(draw, field.type) + not_null + comment


def type_text_of(draw: st.DrawFn, data_type: DataType) -> str:
    match data_type:
        case Scalar(name):
            return draw(st.sampled_from(SPELLINGS.get(name, [str(data_type), str(data_type).upper()])))
        case Array(element):
            return f"ARRAY<{type_text_of(draw, element)}>"
        case Map(key, value):
            return f"map <{type_text_of(draw, key)},{blank(draw)}{type_text_of(draw, value)}>"
        case Struct(fields):
            return "struct<" + ",".join(field_text(draw, field, [":", " ", " : "]) for field in fields) + ">"
