"""Columns written as Spark's DDL: what ``parse_ddl`` reads back, and Spark too."""

from sparklog.model.schema.data_types import Array, Columns, DataType, Field, Map, Scalar, Struct
from sparklog.model.schema.paths import quoted


def ddl_text(columns: Columns) -> str:
    """The columns as ``id bigint NOT NULL COMMENT 'x', s struct<a: int>``."""
    return ", ".join(field_text(column) for column in columns)


def type_text(data_type: DataType) -> str:
    """The type in Spark's words."""
    match data_type:
        case Scalar():
            return str(data_type)
        case Array(element):
            return f"array<{type_text(element)}>"
        case Map(key, value):
            return f"map<{type_text(key)}, {type_text(value)}>"
        case Struct(fields):
            return f"struct<{', '.join(field_text(field, separator=': ') for field in fields)}>"


def field_text(field: Field, *, separator: str = " ") -> str:
    """One column, or one field of a struct."""
    required = "" if field.nullable else " NOT NULL"
    comment = f" COMMENT {_text(field.comment)}" if field.comment else ""
    return f"{quoted(field.name)}{separator}{type_text(field.type)}{required}{comment}"


def _text(comment: str) -> str:
    return "'" + comment.replace("\\", "\\\\").replace("'", "\\'") + "'"
