"""Which DataFrames can be written; errors name the column and the remedy."""

import pytest

from sparklog.model.errors import ConfigError
from sparklog_datasource.rows.form import RowForm, row_type
from sparklog_datasource.writing.write_schema import check_schema


def check(columns: str, *, has_topic_option: bool = True) -> None:
    fields = [part.split(" ", 1) for part in columns.split("; ")]
    check_schema(struct(fields), has_topic_option=has_topic_option)


def struct(fields: list[list[str]]) -> object:
    from pyspark.sql.types import (
        ArrayType,
        BinaryType,
        IntegerType,
        LongType,
        StringType,
        StructField,
        StructType,
    )

    kinds = {
        "string": StringType(),
        "binary": BinaryType(),
        "int": IntegerType(),
        "bigint": LongType(),
        "headers": ArrayType(
            StructType([StructField("key", StringType(), False), StructField("value", BinaryType())]), False
        ),
        "texts": ArrayType(StringType()),
        "swapped": ArrayType(
            StructType([StructField("value", BinaryType()), StructField("key", StringType())])
        ),
    }
    return StructType([StructField(name, kinds[kind]) for name, kind in fields])


@pytest.mark.parametrize(
    "columns",
    [
        "value string",
        "value binary; key string; partition int; headers headers",
        "value string; other bigint",
    ],
)
def test_these_can_be_written(columns: str) -> None:
    check(columns)


def test_rows_that_were_read_can_be_written_again() -> None:
    check_schema(row_type(RowForm(includes_headers=True)), has_topic_option=False)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("key string", r"'value' not found among key; select"),
        ("Value string", r"'value' not found.*\(column 'Value' is spelt differently\)"),
        ("value bigint", r"column 'value' has type bigint, but it must be binary or string; cast it"),
        ("value string; key int", r"column 'key' has type int"),
        ("value string; partition bigint", r"column 'partition' has type bigint, but it must be int"),
        (
            "value string; headers texts",
            r"column 'headers' has type array<string>, but it must be array<struct",
        ),
        ("value string; headers swapped", r"column 'headers'"),
    ],
)
def test_what_cannot_be_written_is_told_by_its_column(columns: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check(columns)


def test_a_topic_must_come_from_a_column_or_the_option() -> None:
    with pytest.raises(ConfigError, match=r"'topic' not found among value; set option topic"):
        check("value string", has_topic_option=False)
    check("value string; topic string", has_topic_option=False)
    with pytest.raises(ConfigError, match=r"column 'topic' has type int"):
        check("value string; topic int", has_topic_option=False)


def test_with_the_option_the_topic_column_does_not_matter() -> None:
    check("value string; topic int")
