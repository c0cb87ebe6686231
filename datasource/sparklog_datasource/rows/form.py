"""The columns of a read's rows, by its options.

They are those of Spark's Kafka connector, all nullable: ``key, value, topic, partition, offset, timestamp,
timestampType`` and, with ``includeHeaders``, ``headers``; or those of them that a read names. Options
``keyFormat`` and ``valueFormat`` make a column text.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

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

HEADERS: Final = "headers"


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
    columns: tuple[str, ...] | None = None
    """The columns that are wanted, in their order; None for all."""


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
    fields = {field.name: field for field in _all_fields(form)}
    if form.columns is not None:
        return StructType([fields[name] for name in form.columns])
    return StructType([field for field in fields.values() if form.includes_headers or field.name != HEADERS])


def untyped_columns() -> list[str]:
    """The names that a read of untyped topics may name."""
    return [field.name for field in _all_fields(RowForm())]


def _all_fields(form: RowForm) -> list[Any]:
    return [
        StructField("key", _payload_type(form.key)),
        StructField("value", _payload_type(form.value)),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField(HEADERS, headers_type()),
    ]


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
