"""Our parser of Spark's DDL agrees with Spark's own: on what is well written, on our text, on what is not."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import Columns
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.spark_json import parse_spark_json
from tests.model.schema.schema_strategies import schemas, spelled

pytestmark = [pytest.mark.integration, pytest.mark.proof]

PIECES = [
    "",
    ",",
    " ",
    "<",
    ">",
    ":",
    "not null",
    "comment 'x'",
    "`",
    "'",
    "(",
    ")",
    "5",
    "struct<a:int>",
    "-",
    "!",
]
SPELLED = schemas.flatmap(lambda columns: st.tuples(st.just(columns), spelled(columns)))


def read_by_spark(spark: Any, ddl: str) -> str | None:
    """The schema as Spark's JSON; None if Spark refuses the DDL."""
    with suppress(PySparkException, Py4JJavaError):
        return str(spark._jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl).json())
    return None


@settings(max_examples=100, deadline=None)
@given(case=SPELLED)
def test_spark_reads_the_same_columns(spark: Any, case: tuple[Columns, str]) -> None:
    columns, ddl = case
    found = read_by_spark(spark, ddl)
    assert found is not None
    assert parse_spark_json(found) == parse_ddl(ddl) == columns


@settings(max_examples=100, deadline=None)
@given(columns=schemas)
def test_spark_reads_what_is_written_as_ddl(spark: Any, columns: Columns) -> None:
    found = read_by_spark(spark, ddl_text(columns))
    assert found is not None
    assert parse_spark_json(found) == columns


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """DDL with a piece cut out, and another put in its place."""
    _, ddl = draw(SPELLED)
    start = draw(st.integers(0, len(ddl)))
    end = min(len(ddl), start + draw(st.integers(0, 3)))
    return ddl[:start] + draw(st.sampled_from(PIECES)) + ddl[end:]


@settings(max_examples=200, deadline=None)
@given(ddl=mangled())
def test_spark_refuses_what_is_refused_for_its_form(spark: Any, ddl: str) -> None:
    """What Spark reads and a topic cannot have is refused by name."""
    found = read_by_spark(spark, ddl)
    if found is None or is_named_as_not_supported(ddl):
        with pytest.raises(SchemaError):
            parse_ddl(ddl)
    else:
        assert parse_spark_json(found) == parse_ddl(ddl)


def is_named_as_not_supported(ddl: str) -> bool:
    try:
        parse_ddl(ddl)
    except SchemaError as refusal:
        return "is not supported" in str(refusal)
    return False
