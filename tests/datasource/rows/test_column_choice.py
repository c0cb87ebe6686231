"""The list of columns that a read names."""

import pytest
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructType

from sparklog.model.errors import ConfigError
from sparklog_datasource.rows.column_choice import named_columns, refuse_other_types, refuse_unknown


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("id", ("id",)),
        ("id, mag, _offset", ("id", "mag", "_offset")),
        ("  `a b`,`x,y` , `t``k`,`s.a`, 7d ", ("a b", "x,y", "t`k", "s.a", "7d")),
    ],
)
def test_names_are_read_in_their_order_and_backticks_hold_any(text: str, names: tuple[str, ...]) -> None:
    assert named_columns(text) == names


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "option columns='': a column is expected before ''; .* for a count offset suffices"),
        ("id,", "option columns='id,': a column is expected before ''"),
        ("id mag", "a comma is expected before 'mag'"),
        ("id, s.a", r"s\.a is within column s; name the column"),
        ("id, *, mag", r"a column is expected before ' \*, mag'"),
        ("id, id, mag, mag", "name id, mag more than once"),
        ("`id", "a column is expected before '`id'"),
    ],
)
def test_what_is_no_list_of_columns_is_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        named_columns(text)


def test_an_unknown_name_is_shown_with_the_nearest_one() -> None:
    refuse_unknown(["mag"], ["id", "mag"], "topic 't'")
    words = r"no columns Mag \(near mag\), zzz in topic 't', which has id, mag, `a b`: correct the name"
    with pytest.raises(ConfigError, match=words):
        refuse_unknown(["Mag", "zzz", "id"], ["id", "mag", "a b"], "topic 't'")
    with pytest.raises(ConfigError, match="c18, c19, …: correct"):
        refuse_unknown(["x"], [f"c{nth}" for nth in range(30)], "topic 't'")


def test_types_are_those_of_the_rows_and_all_may_be_null() -> None:
    arrays = ArrayType(IntegerType())
    rows = StructType().add("id", LongType()).add("a", arrays)
    refuse_other_types(StructType().add("id", LongType(), True, {"comment": "x"}).add("a", arrays), rows)
    with pytest.raises(ConfigError, match="column id is int by the schema of the read, and bigint in its"):
        refuse_other_types(StructType().add("id", IntegerType()).add("a", arrays), rows)
    with pytest.raises(ConfigError, match="column id is NOT NULL by the schema"):
        refuse_other_types(StructType().add("id", LongType(), False).add("a", arrays), rows)
