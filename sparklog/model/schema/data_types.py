"""Types of columns, and columns themselves.

A field's id is ``NO_ID`` in what was parsed; a topic's fields have ids from 1 on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

NO_ID: Final = 0
DECIMAL_DIGITS_MAX: Final = 38
DECIMAL: Final = "decimal"
SCALAR_NAMES: Final = (
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    DECIMAL,
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
)
"""Spark's names of the scalar types, as its DDL writes them."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """``precision`` counts all digits of a decimal, ``scale`` those after the point."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"{DECIMAL}({self.precision},{self.scale})" if self.name == DECIMAL else self.name


@dataclass(frozen=True, slots=True)
class Array:
    element: "DataType"


@dataclass(frozen=True, slots=True)
class Map:
    key: "DataType"
    value: "DataType"


@dataclass(frozen=True, slots=True)
class Struct:
    fields: "tuple[Field, ...]"


DataType = Scalar | Array | Map | Struct


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a field of a struct."""

    name: str
    type: DataType
    nullable: bool = True
    comment: str = ""
    id: int = NO_ID


Columns = tuple[Field, ...]


def shape_of(columns: Columns) -> Columns:
    """Names and types alone: without ids and comments, and all nullable."""
    return tuple(Field(column.name, _shape_of_type(column.type)) for column in columns)


def _shape_of_type(data_type: DataType) -> DataType:
    match data_type:
        case Scalar():
            return data_type
        case Array(element):
            return Array(_shape_of_type(element))
        case Map(key, value):
            return Map(_shape_of_type(key), _shape_of_type(value))
        case Struct(fields):
            return Struct(shape_of(fields))


def parts_of(data_type: DataType) -> tuple[tuple[str, DataType], ...]:
    """The types that ``data_type`` is made of, each with its name in a path of Spark's ALTER TABLE."""
    match data_type:
        case Scalar():
            return ()
        case Array(element):
            return (("element", element),)
        case Map(key, value):
            return (("key", key), ("value", value))
        case Struct(fields):
            return tuple((field.name, field.type) for field in fields)


def all_fields(columns: Columns) -> Iterator[Field]:
    """The columns, and the fields of structs on every level."""
    for column in columns:
        yield column
        yield from _fields_in(column.type)


def _fields_in(data_type: DataType) -> Iterator[Field]:
    if isinstance(data_type, Struct):
        yield from all_fields(data_type.fields)
        return
    for _, part in parts_of(data_type):
        yield from _fields_in(part)
