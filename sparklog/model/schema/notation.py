"""A schema's text in either notation: Spark's DDL, or the JSON of a Spark schema."""

from dataclasses import replace

from sparklog.model.schema.data_types import Array, Columns, DataType, Field, Map, Scalar, Struct
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.paths import joined
from sparklog.model.schema.schema_limits import check_length
from sparklog.model.schema.spark_json import parse_spark_json


def parse_schema(text: str) -> Columns:
    """The columns, as they were written. Text that begins with a brace is JSON. Raises SchemaError."""
    check_length(text)
    return parse_spark_json(text) if text.lstrip().startswith("{") else parse_ddl(text)


def without_inner_not_null(columns: Columns) -> tuple[Columns, tuple[str, ...]]:
    """The columns with NOT NULL on the first level alone, and the paths that lost theirs."""
    dropped: list[str] = []
    loose = tuple(
        replace(column, type=_loose(joined("", column.name), column.type, dropped)) for column in columns
    )
    return loose, tuple(dropped)


def _loose(path: str, data_type: DataType, dropped: list[str]) -> DataType:
    match data_type:
        case Scalar():
            return data_type
        case Array(element):
            return Array(_loose(joined(path, "element"), element, dropped))
        case Map(key, value):
            of_key = _loose(joined(path, "key"), key, dropped)
            return Map(of_key, _loose(joined(path, "value"), value, dropped))
        case Struct(fields):
            return Struct(tuple(_loose_field(path, field, dropped) for field in fields))


def _loose_field(parent: str, field: Field, dropped: list[str]) -> Field:
    path = joined(parent, field.name)
    if not field.nullable:
        dropped.append(path)
    return replace(field, type=_loose(path, field.type, dropped), nullable=True)
