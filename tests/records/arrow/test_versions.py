"""Batches and readers of different versions of a topic's columns: ids say what belongs together."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import ErrorCode, SchemaError
from sparklog.model.schema.change_texts import parse_change
from sparklog.model.schema.data_types import Columns, Field, Scalar, Struct
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.evolution import changed
from sparklog.model.schema.new_schema import new_schema
from sparklog.records.arrow.arrow_types import arrow_type
from sparklog.records.arrow.topic_columns import TopicColumns, UnknownColumns
from sparklog.records.arrow.typed_payload import typed_batch
from sparklog.records.envelope import parse_header
from sparklog.records.payload_kinds import ALL_PAYLOADS
from sparklog.records.typed_decoding import TypedReading
from sparklog.records.validate import Accepted, RefusedBatch, check_produced

CHANGES = [
    "add-column {} tinyint",
    "add-column s.{} tinyint",
    "drop-column {}",
    "drop-column s.{}",
    "rename-column {}={}",
    "rename-column s.{}={}",
    "widen-column {} int",
    "widen-column s.{} int",
]
NAMES = st.sampled_from(["a", "b", "c"])
Row = dict[int, Any]
"""Values by the ids of their columns; those of a struct are a row, too."""


def evolved(schema: SchemaDocument, *changes: str) -> SchemaDocument:
    return changed(schema, [parse_change(*change.split(" ", 1)) for change in changes])


def batch_of(rows: list[Row], topic: TopicColumns, version: int) -> bytes:
    columns = topic.at(version)
    present = {
        field.id: pa.array([by_name(row[field.id], field) for row in rows], arrow_type(field.type))
        for field in columns.columns
    }
    return typed_batch(present, len(rows), columns, now_ms=5)


def by_name(value: Any, field: Field) -> Any:
    if not isinstance(field.type, Struct):
        return value
    return {one.name: value[one.id] for one in field.type.fields}


def read(batch: bytes, reading: TypedReading) -> list[dict[str, Any]]:
    (found,) = reading.read(batch, [(0, parse_header(batch))])
    return [dict(list(row.items())[:-2]) for row in found.to_pylist()]


def expected(row: Row, wanted: Columns) -> dict[str, Any]:
    """The row as a reader of these columns has it, found by ids alone."""
    return {
        field.name: expected(row[field.id], field.type.fields)
        if isinstance(field.type, Struct)
        else row.get(field.id)
        for field in wanted
    }


def fits(row: Row, wanted: Columns) -> bool:
    return all(
        fits(row[field.id], field.type.fields)
        if isinstance(field.type, Struct)
        else field.type != Scalar("tinyint") or -128 <= (row.get(field.id) or 0) < 128
        for field in wanted
    )


@st.composite
def topics(draw: st.DrawFn) -> TopicColumns:
    schema = new_schema(parse_ddl("a tinyint, keep tinyint, s struct<a: tinyint, keep: tinyint>"))
    for _ in range(draw(st.integers(1, 8))):
        change = draw(st.sampled_from(CHANGES)).format(draw(NAMES), draw(NAMES))
        try:
            schema = evolved(schema, change)
        except SchemaError:
            continue
    return TopicColumns(schema)


@st.composite
def rows_of(draw: st.DrawFn, columns: Columns) -> Row:
    return {
        field.id: draw(rows_of(field.type.fields))
        if isinstance(field.type, Struct)
        else draw(st.none() | st.integers(-100, 100) | st.just(300 if field.type == Scalar("int") else 7))
        for field in columns
    }


@settings(deadline=None, max_examples=150)
@given(data=st.data(), topic=topics())
def test_every_reader_has_the_values_of_the_ids_that_it_planned(
    data: st.DataObject, topic: TopicColumns
) -> None:
    versions = st.integers(1, topic.document.version)
    written, planned = data.draw(versions), data.draw(versions)
    rows = data.draw(st.lists(rows_of(topic.at(written).columns), min_size=1, max_size=3))
    wanted = topic.at(planned).columns
    batch = batch_of(rows, topic, written)
    if all(fits(row, wanted) for row in rows):
        assert read(batch, TypedReading(topic, wanted)) == [expected(row, wanted) for row in rows]
    else:
        with pytest.raises(SchemaError, match=r"the value 300, which tinyint cannot hold.*restart the query"):
            read(batch, TypedReading(topic, wanted))


FIRST = new_schema(parse_ddl("id int NOT NULL, mag float"))
SECOND = evolved(FIRST, "rename-column mag=size", "add-column mag int")
LATER = batch_of([{1: 1, 2: 0.5, 3: 7}], TopicColumns(SECOND), 2)


def test_a_reader_that_meets_an_unknown_version_asks_once_and_keeps_its_columns() -> None:
    asked: list[int] = []

    def ask(version: int) -> TopicColumns:
        asked.append(version)
        return TopicColumns(SECOND)

    reading = TypedReading(TopicColumns(FIRST), FIRST.at(1), ask)
    for _ in range(2):
        assert read(LATER, reading) == [{"id": 1, "mag": 0.5}]
    assert asked == [2]


def test_a_reader_that_can_ask_nobody_says_which_version_it_lacks() -> None:
    with pytest.raises(UnknownColumns, match="rows of version 2 of the topic's columns: known are 1 to 1"):
        read(LATER, TypedReading(TopicColumns(FIRST), FIRST.at(1)))


def produced(batch: bytes, schema: SchemaDocument) -> Accepted | RefusedBatch:
    return check_produced(
        batch, max_batch_bytes=1 << 20, payload_kinds=ALL_PAYLOADS, columns=TopicColumns(schema)
    )


def test_a_leader_has_rows_of_a_version_that_it_does_not_know_sent_again() -> None:
    refused = produced(LATER, FIRST)
    assert isinstance(refused, RefusedBatch)
    assert refused.error is ErrorCode.unknown_topic_or_partition
    assert isinstance(produced(LATER, SECOND), Accepted)


def test_a_leader_takes_rows_of_every_version_and_holds_each_to_its_own_not_null() -> None:
    loose = evolved(SECOND, "drop-not-null id")
    topic = TopicColumns(loose)
    for version, is_taken in [(1, False), (2, False), (3, True)]:
        batch = batch_of([{1: None, 2: 0.5, 3: None}], topic, version)
        assert isinstance(produced(batch, loose), Accepted) is is_taken
