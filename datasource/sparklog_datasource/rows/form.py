"""The columns of a read's rows, by its options.

They are those of Spark's Kafka connector, all nullable: ``key, value, topic, partition, offset, timestamp,
timestampType`` and, with ``includeHeaders``, ``headers``. Options ``keyFormat`` and ``valueFormat`` make a
column text.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from sparklog.model.errors import ConfigError
from sparklog_datasource.options.option_parsing import Options


class ColumnForm(Enum):
    """The form of keys, or of values."""

    BINARY = auto()
    TEXT = auto()
    """Bytes that are no UTF-8 fail the read."""

    TEXT_OR_NULL = auto()
    """Bytes that are no UTF-8 become null."""


@dataclass(frozen=True, slots=True)
class RowForm:
    """The columns of a read."""

    includes_headers: bool = False
    key: ColumnForm = ColumnForm.BINARY
    value: ColumnForm = ColumnForm.BINARY


def form_of(options: Options) -> RowForm:
    """The form that the options name; ConfigError for an unknown one."""
    return RowForm(
        includes_headers=options.boolean("includeHeaders", False),
        key=_column_form(options, "keyFormat"),
        value=_column_form(options, "valueFormat"),
    )


def headers_type() -> Any:
    """Spark's type of the headers column, for reads and writes."""
    return ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))


def row_type(form: RowForm) -> Any:
    """Spark's type of a row."""
    fields = [
        StructField("key", _payload_type(form.key)),
        StructField("value", _payload_type(form.value)),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    return StructType([*fields, StructField("headers", headers_type())] if form.includes_headers else fields)


def refuse_other_schema(schema: Any, form: RowForm) -> None:
    """ConfigError for a user's schema, as with the Kafka connector: the options alone decide the columns."""
    expected = row_type(form)
    if schema != expected:
        raise ConfigError(
            "sparklog reads have a fixed schema, so .schema(...) and other columns of a table are refused: "
            f"leave them out and select or cast columns instead. Given: {schema.simpleString()}. "
            f"Fixed: {expected.simpleString()}"
        )


def _column_form(options: Options, option: str) -> ColumnForm:
    is_text = options.choice(option, "binary", ("binary", "string")) == "string"
    errors = f"{option}.errors"
    on_errors = options.choice(errors, "fail", ("fail", "null"))
    if not is_text:
        if options.text(errors) is not None:
            raise ConfigError(
                f"option {errors}={on_errors!r} needs {option}=string: set it, or leave {errors} out"
            )
        return ColumnForm.BINARY
    return ColumnForm.TEXT if on_errors == "fail" else ColumnForm.TEXT_OR_NULL


def _payload_type(form: ColumnForm) -> Any:
    return BinaryType() if form is ColumnForm.BINARY else StringType()
