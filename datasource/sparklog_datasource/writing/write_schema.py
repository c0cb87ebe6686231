"""Which columns of a DataFrame are written, checked on the driver before anything is.

``value`` (binary or string) is required. ``key`` (binary or string), ``headers``, ``partition`` (int) and,
unless option ``topic`` names one, ``topic`` (string) are taken if they are there. Columns are found by their
exact lower-case names and all others are ignored, as by Spark's Kafka connector: so rows that were read can
be written again as they are.
"""

from collections.abc import Callable
from typing import Any, Final

from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructType

from sparklog.model.errors import ConfigError


def check_schema(schema: Any, *, has_topic_option: bool) -> None:
    """ConfigError that names the column and the remedy, unless a DataFrame of this type can be written."""
    columns = {field.name: field.dataType for field in schema.fields}
    if "value" not in columns:
        raise _missing("value", columns, "select the bytes or the text to write as value")
    if "topic" not in columns and not has_topic_option:
        raise _missing("topic", columns, "set option topic, or select a column as topic")
    for name, (is_legal, expected, remedy) in _RULES.items():
        if name in columns and not is_legal(columns[name]) and not (name == "topic" and has_topic_option):
            raise ConfigError(
                f"column '{name}' has type {columns[name].simpleString()}, but it must be {expected}; "
                f"{remedy}"
            )


def _missing(name: str, columns: dict[str, Any], remedy: str) -> ConfigError:
    other_case = [column for column in columns if column.lower() == name]
    hint = f" (column {other_case[0]!r} is spelt differently)" if other_case else ""
    return ConfigError(
        f"required column '{name}' not found among {', '.join(columns) or 'no columns'}{hint}; {remedy}"
    )


def _is_bytes(kind: Any) -> bool:
    return isinstance(kind, BinaryType | StringType)


def _is_headers(kind: Any) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = [(field.name, type(field.dataType)) for field in kind.elementType.fields]
    return fields == [("key", StringType), ("value", BinaryType)]


_RULES: Final[dict[str, tuple[Callable[[Any], bool], str, str]]] = {
    "value": (_is_bytes, "binary or string", "cast it"),
    "key": (_is_bytes, "binary or string", "cast it"),
    "topic": (lambda kind: isinstance(kind, StringType), "string", "cast it, or set option topic"),
    "partition": (lambda kind: isinstance(kind, IntegerType), "int", "cast it"),
    "headers": (
        _is_headers,
        "array<struct<key:string,value:binary>>",
        "build it by array(struct(... as key, ... as value)), or drop it",
    ),
}
