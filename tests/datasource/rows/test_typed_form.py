"""The rows of a typed read in Spark's types: they must be exactly those that Spark expects."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from pyspark.sql.pandas.types import to_arrow_schema

from sparklog.model.ids import NO_TOPIC_ID, TopicPartition
from sparklog.model.schema.data_types import Columns, shape_of
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.new_schema import new_schema
from sparklog.records.arrow.arrow_types import TIMESTAMP, columns_of_arrow
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog_datasource.rows.typed_form import (
    TypedForm,
    planned_topic,
    typed_arrow_schema,
    typed_row_type,
    typed_with_place,
)
from tests.model.schema.schema_strategies import schemas

ALL = (
    "a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h decimal(38,18), i string, "
    "j binary, k date, l timestamp, m timestamp_ntz, "
    "n array<map<string, struct<x: decimal(5,0), y: array<timestamp>>>>"
)


def form_of(columns: Columns, *, includes_metadata: bool = False) -> TypedForm:
    return TypedForm.whole(shape_of(new_schema(columns).at(1)), includes_metadata=includes_metadata)


@settings(deadline=None, max_examples=80)
@given(columns=schemas)
def test_spark_maps_its_types_to_the_same_arrow_schema(columns: Columns):
    form = form_of(columns)
    assert to_arrow_schema(typed_row_type(form), timezone="UTC").equals(typed_arrow_schema(form))
    assert columns_of_arrow(typed_arrow_schema(form)) == shape_of(columns)


def test_columns_and_the_place_may_be_named_in_any_order():
    topic = TopicColumns(new_schema(parse_ddl("id bigint, `a b` string, at timestamp")))
    planned = planned_topic("t", NO_TOPIC_ID, topic.document, ("at", "_offset", "id", "_topic"))
    assert [column.id for column in planned.columns] == [3, 1]
    form = TypedForm(shape_of(planned.columns), ("at", "_offset", "id", "_topic"), (planned,), are_all=False)
    assert to_arrow_schema(typed_row_type(form), timezone="UTC").equals(typed_arrow_schema(form))
    rows = pa.record_batch(
        {"at": pa.nulls(2, TIMESTAMP), "id": pa.array([5, 6]), "_offset": pa.array([8, 9])}
    )
    placed = typed_with_place(rows, TopicPartition("t", 3), form)
    assert placed.to_pylist() == [{"at": None, "_offset": n + 3, "id": n, "_topic": "t"} for n in (5, 6)]


@pytest.mark.parametrize("includes_metadata", [False, True])
def test_every_type_and_the_place_of_a_row(includes_metadata: bool):
    form = form_of(parse_ddl(ALL), includes_metadata=includes_metadata)
    row_type = typed_row_type(form)
    assert to_arrow_schema(row_type, timezone="UTC").equals(typed_arrow_schema(form))
    assert all(field.nullable for field in row_type.fields)
    place = ["_topic", "_partition", "_offset", "_timestamp"]
    assert row_type.names[14:] == (place if includes_metadata else [])
