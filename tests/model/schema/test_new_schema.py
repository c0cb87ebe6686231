"""A new topic's schema has ids, and is refused with a reason; its document keeps all versions."""

import json
import weakref

import pytest
from hypothesis import given

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import Columns, Field, Scalar, all_fields
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.document import SchemaDocument
from sparklog.model.schema.new_schema import new_schema
from sparklog.model.schema.notation import parse_schema, without_inner_not_null
from tests.model.schema.schema_strategies import schemas


def refusal_of(ddl: str, key: str = "", timestamp: str = "") -> str:
    with pytest.raises(SchemaError) as refusal:
        new_schema(parse_schema(ddl), key, timestamp)
    return str(refusal.value)


@given(schemas)
def test_the_first_version_has_the_columns_and_an_id_for_each_field(columns: Columns) -> None:
    document = new_schema(columns)
    loose, _ = without_inner_not_null(columns)
    assert ddl_text(document.at(1)) == ddl_text(loose)
    ids = [field.id for field in all_fields(document.at(1))]
    assert sorted(ids) == list(range(1, document.next_id))


@given(schemas)
def test_a_document_is_read_as_it_was_written(columns: Columns) -> None:
    document = new_schema(columns)
    assert SchemaDocument.decode(document.encode()) == document


def test_equal_bytes_are_decoded_once_for_as_long_as_somebody_uses_them() -> None:
    data = new_schema(parse_schema("a int")).encode()
    used = SchemaDocument.decode(data)
    assert SchemaDocument.decode(bytes(bytearray(data))) is used
    kept = weakref.ref(used)
    del used
    assert kept() is None


def test_not_null_inside_of_columns_is_dropped_and_named() -> None:
    columns, dropped = without_inner_not_null(
        parse_schema("a int not null, s struct<b: int not null, m: map<string, struct<`c d`: int not null>>>")
    )
    assert ddl_text(columns) == "a int NOT NULL, s struct<b: int, m: map<string, struct<`c d`: int>>>"
    assert dropped == ("s.b", "s.m.value.`c d`")


def test_key_and_timestamp_are_ids_of_columns() -> None:
    document = new_schema(parse_schema("s struct<a: int>, id bigint, at timestamp"), "id", "at")
    assert (document.key, document.timestamp) == (3, 4)
    assert (document.name_of(document.key), document.name_of(document.timestamp)) == ("id", "at")
    assert document.name_of(None) == ""


@pytest.mark.parametrize("name", ["_topic", "_Partition", "_OFFSET", "_timestamp"])
def test_names_that_a_read_may_append_are_reserved_for_columns(name: str) -> None:
    assert refusal_of(f"{name} int").startswith(f"column {name}: the name is reserved")
    assert new_schema(parse_schema(f"s struct<{name}: int>"))


def test_names_that_differ_by_case_alone_are_refused_on_every_level() -> None:
    assert refusal_of("a int, A int") == "column A: there is a already; case makes no other name"
    assert refusal_of("s array<struct<b: int, b: int>>") == (
        "column s.element.b: there is b already; case makes no other name"
    )


def test_a_schema_and_a_struct_have_fields() -> None:
    assert refusal_of('{"type": "struct", "fields": []}') == "the schema has no columns; name at least one"
    assert refusal_of("s struct<>") == "column s: the struct has no fields; name at least one"


def test_names_have_between_one_and_255_characters() -> None:
    assert refusal_of("`` int") == "column ``: the name has 0 characters; use 1 to 255"
    assert "the name has 256 characters; use 1 to 255" in refusal_of(f"{'a' * 256} int")


def test_half_a_surrogate_pair_is_no_name() -> None:
    assert "half a surrogate pair" in refusal_of(r"a int comment '\ud800'")


def test_the_key_of_a_map_has_no_map_in_it() -> None:
    assert refusal_of("m map<struct<a: map<int, int>>, int>") == (
        "column m: the key of a map has no map in it; use an array of structs"
    )


def test_columns_and_fields_are_counted_on_all_levels() -> None:
    fields = ", ".join(f"f{number}: int" for number in range(999))
    assert new_schema(parse_schema(f"s struct<{fields}>"))
    assert refusal_of(f"s struct<{fields}, more: int>") == (
        "the schema has 1,001 columns and fields, at most 1,000 are allowed; use fewer"
    )


def test_a_document_of_a_new_topic_has_at_most_a_hundred_thousand_bytes() -> None:
    assert refusal_of(f"a int comment '{'x' * 100_000}'") == (
        "the schema takes 100,122 bytes, at most 100,000 are allowed for a new topic; "
        "use fewer columns, or shorter names and comments"
    )


def test_the_key_is_a_column_with_a_single_value() -> None:
    assert (
        refusal_of("a array<int>", key="a") == "key column a is an array; choose a column with a single value"
    )
    assert refusal_of("a map<int, int>", key="a").startswith("key column a is a map or struct")
    assert refusal_of("id int", key="ID") == "key column ID is not in the schema; did you mean id?"
    assert (
        refusal_of("id int", key="x")
        == "key column x is not in the schema; choose one of the schema's columns"
    )


def test_the_timestamp_column_is_a_timestamp() -> None:
    assert refusal_of("a timestamp_ntz", timestamp="a") == (
        "timestamp column a is of type timestamp_ntz; choose one of type timestamp"
    )


CHANGED = {
    "format": 1,
    "version": 3,
    "next_id": 6,
    "key": 1,
    "timestamp": None,
    "columns": [
        {"id": 1, "name": "id", "type": "bigint", "nullable_since": 3},
        {"id": 2, "name": [[1, "mag"], [3, "size"]], "type": [[1, "float"], [2, "double"]], "dropped": 4},
        {"id": 3, "name": "s", "type": {"struct": [
            {"id": 4, "name": "a", "type": {"array": [[1, "int"], [2, "bigint"]]}},
            {"id": 5, "name": "b", "type": "int", "since": 2, "dropped": 3, "comment": "short-lived"},
        ]}},
    ],
}  # fmt: skip


def test_each_version_of_a_changed_document_has_its_own_columns() -> None:
    document = SchemaDocument.decode(json.dumps(CHANGED).encode())
    assert [ddl_text(document.at(version)) for version in (1, 2, 3)] == [
        "id bigint NOT NULL, mag float, s struct<a: array<int>>",
        "id bigint NOT NULL, mag double, s struct<a: array<bigint>, b: int COMMENT 'short-lived'>",
        "id bigint, size double, s struct<a: array<bigint>>",
    ]
    assert document.at(3)[1] == Field("size", Scalar("double"), id=2)
    assert json.loads(document.encode()) == CHANGED


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"format": 1}', b'{"format":' * 9_000])
def test_what_is_no_document_is_refused_with_its_first_bytes(data: bytes) -> None:
    with pytest.raises(SchemaError, match="the schema is damaged"):
        SchemaDocument.decode(data)


def test_a_document_of_a_later_format_asks_for_a_later_release() -> None:
    with pytest.raises(SchemaError, match="is of format 2, this release knows 1; use a later release"):
        SchemaDocument.decode(b'{"format": 2}')
