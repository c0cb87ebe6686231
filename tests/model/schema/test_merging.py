"""What a topic is changed to, so that a writer's columns fit."""

import pytest
from hypothesis import given

from sparklog.model.errors import SchemaError
from sparklog.model.schema.change_texts import change_text
from sparklog.model.schema.data_types import Columns
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.evolution import changed
from sparklog.model.schema.fitting import fit
from sparklog.model.schema.merging import merge_changes
from sparklog.model.schema.new_schema import new_schema
from tests.model.schema.schema_strategies import schemas

TOPIC = (
    "id int NOT NULL, mag float, s struct<a: int>, l array<struct<x: date>>, m map<string, struct<y: int>>"
)


@pytest.mark.parametrize(
    ("given_columns", "changes"),
    [
        ("id int, mag float", []),
        ("id smallint", []),
        ("id bigint, mag double", ["widen-column id bigint", "widen-column mag double"]),
        ("id int, x int NOT NULL COMMENT 'c'", ["add-column x int COMMENT 'c'"]),
        ("id int, s struct<a: bigint, b: int>", ["widen-column s.a bigint", "add-column s.b int"]),
        (
            "id int, l array<struct<x: timestamp_ntz, z: int NOT NULL>>",
            ["widen-column l.element.x timestamp_ntz", "add-column l.element.z int"],
        ),
        (
            "id int, m map<string, struct<y: int, z: array<int>>>",
            ["add-column m.value.z array<int>"],
        ),
        ("id int, x struct<a: int NOT NULL>", ["add-column x struct<a: int>"]),
    ],
)
def test_what_is_new_is_added_and_what_is_wider_is_widened(given_columns: str, changes: list[str]) -> None:
    given, topic = parse_ddl(given_columns), new_schema(parse_ddl(TOPIC))
    made = merge_changes(given, topic.at(1))
    assert [" ".join(change_text(change)) for change in made] == changes
    after = changed(topic, made).at(2) if made else topic.at(1)
    assert [column.name for column in fit(given, after)] == [column.name for column in given]
    assert merge_changes(given, after) == []


@pytest.mark.parametrize("given_columns", ["id string", "id int, mag decimal(5,1)", "id int, s int"])
def test_another_type_is_left_to_the_refusal(given_columns: str) -> None:
    given, topic = parse_ddl(given_columns), new_schema(parse_ddl(TOPIC))
    assert merge_changes(given, topic.at(1)) == []
    with pytest.raises(SchemaError, match="types are equal or widen"):
        fit(given, topic.at(1))


@given(columns=schemas)
def test_a_topic_takes_any_columns_that_it_can_have(columns: Columns) -> None:
    topic = new_schema(parse_ddl("the_first int"))
    more = tuple(column for column in columns if column.name.lower() != "the_first")
    try:
        expected = new_schema(more)
    except SchemaError:
        return
    after = changed(topic, merge_changes(more, topic.at(1)))
    loose = ddl_text(expected.at(1)).replace(" NOT NULL", "")
    assert ddl_text(after.at(2)).replace(" NOT NULL", "") == f"the_first int, {loose}"
