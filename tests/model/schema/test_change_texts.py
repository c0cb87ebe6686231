"""Changes of columns as texts: what the command line and the wire have, and what is refused in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.model.errors import SchemaError
from sparklog.model.schema.change_texts import (
    OPERATIONS,
    TEXT_CHARACTERS_MAX,
    AddColumn,
    DropColumn,
    DropNotNull,
    RenameColumn,
    SchemaChange,
    WidenColumn,
    change_text,
    parse_change,
)
from sparklog.model.schema.data_types import Array, Field, Scalar, Struct
from tests.model.schema.schema_strategies import data_types, texts, words

INT = Scalar("int")
paths = st.lists(words, min_size=1, max_size=3).map(tuple)
changes: st.SearchStrategy[SchemaChange] = (
    st.builds(AddColumn, st.just(()) | paths, st.builds(Field, words, data_types, st.booleans(), texts))
    | st.builds(DropColumn, paths)
    | st.builds(RenameColumn, paths, words)
    | st.builds(WidenColumn, paths, data_types)
    | st.builds(DropNotNull, paths)
)


@given(change=changes)
def test_a_change_is_read_back_from_its_text(change: SchemaChange) -> None:
    assert parse_change(*change_text(change)) == change


@pytest.mark.parametrize(
    ("operation", "text", "change"),
    [
        ("add-column", "x int", AddColumn((), Field("x", INT))),
        ("add-column", " s.x INT comment 'y'", AddColumn(("s",), Field("x", INT, comment="y"))),
        ("add-column", "a.element.x array<int>", AddColumn(("a", "element"), Field("x", Array(INT)))),
        ("add-column", "s struct<a: int>", AddColumn((), Field("s", Struct((Field("a", INT),))))),
        ("drop-column", "m.value.`a ``b`", DropColumn(("m", "value", "a `b"))),
        ("rename-column", "s.x = `y z`", RenameColumn(("s", "x"), "y z")),
        ("rename-column", "`a=b`=c", RenameColumn(("a=b",), "c")),
        ("widen-column", "a.element bigint", WidenColumn(("a", "element"), Scalar("bigint"))),
        ("drop-not-null", "x", DropNotNull(("x",))),
    ],
)
def test_paths_are_those_of_sparks_alter_table(operation: str, text: str, change: SchemaChange) -> None:
    assert parse_change(operation, text) == change


@pytest.mark.parametrize(
    ("operation", "text", "reason"),
    [
        ("add-column", "", "'' is no column: at character 1 a name is expected"),
        ("add-column", "s. int", "at character 3 a name is expected"),
        ("add-column", "x", "column x lacks its type; write e.g. 'x int'"),
        ("add-column", "s.x void", "column s.x: type void is not supported"),
        ("add-column", "x int, y int", "expected a comma or the end|expected the end"),
        ("add-column", "x" + ".element" * 40 + " int", "types are at most 32 levels deep"),
        ("drop-column", "x int", "'int' follows the column; give the column alone"),
        ("drop-column", "`x", "a name is expected"),
        ("rename-column", "x", "write PATH=NAME, such as x=y or s.x=y"),
        ("rename-column", "x=", "a name is expected"),
        ("rename-column", "s.x=s.y", "after = stands the new name alone, because a column stays where it is"),
        ("rename-column", "x=y z", "after = stands the new name alone"),
        ("widen-column", "x bigint NOT NULL", "NOT NULL and comments do not change; give a type alone"),
        ("move-column", "x", "there is no change 'move-column'; there are add-column, drop-column"),
        ("drop-column", "x" * (TEXT_CHARACTERS_MAX + 1), "at most 100,000 are allowed"),
    ],
)
def test_text_that_is_no_change_is_refused_with_the_remedy(operation: str, text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        parse_change(operation, text)


def test_each_operation_has_an_option_of_that_name() -> None:
    assert OPERATIONS == ("add-column", "drop-column", "rename-column", "widen-column", "drop-not-null")
