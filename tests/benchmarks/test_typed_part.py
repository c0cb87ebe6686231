"""What the part about typed topics writes and asks for."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench import typed_start
from bench.spark_typed import COLUMNS, SCHEMA
from bench.typed import ONE, TIME, first_hundredth

from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.predicates.parser import parse_condition
from sparklog.model.schema.predicates.tree import Term


def test_rows_have_twenty_columns_whose_types_a_topic_may_have() -> None:
    assert [field.name for field in parse_ddl(SCHEMA)] == list(COLUMNS)
    assert len(COLUMNS) == 20
    assert {ONE, TIME} <= set(COLUMNS)


def test_topics_of_a_start_have_two_hundred_columns() -> None:
    assert len(parse_ddl(typed_start.SCHEMA)) == typed_start.COLUMNS == 200


@pytest.mark.parametrize("rows", [2_000_000, 50_000])
def test_the_condition_is_true_of_the_first_hundredth_of_the_rows(rows: int) -> None:
    condition = parse_condition(first_hundredth(rows), parse_ddl(SCHEMA))
    assert isinstance(condition, Term)
    until = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=rows // 100)
    assert until.isoformat(timespec="milliseconds") in first_hundredth(rows)
