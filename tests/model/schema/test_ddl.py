"""Spark's DDL is read and written. That Spark reads it alike is tested in tests/datasource."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import Array, Columns, Field, Map, Scalar, Struct
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.model.schema.notation import parse_schema
from sparklog.model.schema.schema_limits import TEXT_CHARACTERS_MAX
from tests.model.schema.schema_strategies import schemas, spelled

EXAMPLE = "; write e.g. id bigint, name string"
SPELLED = schemas.flatmap(lambda columns: st.tuples(st.just(columns), spelled(columns)))


@given(schemas)
def test_what_is_written_is_read_back(columns: Columns) -> None:
    assert parse_ddl(ddl_text(columns)) == columns


@given(SPELLED)
def test_all_spellings_of_a_schema_are_read_alike(case: tuple[Columns, str]) -> None:
    columns, ddl = case
    assert parse_ddl(ddl) == columns


def test_the_example_of_the_contract() -> None:
    assert parse_ddl("id bigint NOT NULL COMMENT 'x', s struct<a: int>") == (
        Field("id", Scalar("bigint"), nullable=False, comment="x"),
        Field("s", Struct((Field("a", Scalar("int")),))),
    )


def test_angles_that_close_together_close_one_level_each() -> None:
    assert parse_ddl("a array<map<string,array<int>>>") == (
        Field("a", Array(Map(Scalar("string"), Array(Scalar("int"))))),
    )


def test_escapes_within_comments_mean_what_they_mean_in_spark() -> None:
    ddl = r"""a int comment 'it''s \'q\' \n \u0041 \U00000042 \101 \% \_ \q \0' "x" r'\n'"""
    assert parse_ddl(ddl)[0].comment == "it's 'q' \n A B A \\% \\_ q \0x\\n"


def test_a_decimal_without_digits_has_ten() -> None:
    assert [str(column.type) for column in parse_ddl("a decimal, b dec(5), c numeric(5,2)")] == [
        "decimal(10,0)",
        "decimal(5,0)",
        "decimal(5,2)",
    ]


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("", "schema: expected a column's name, found the end" + EXAMPLE),
        ("a int,", "schema: expected a column's name, found the end" + EXAMPLE),
        ("a", "schema: expected the type of column a, found the end" + EXAMPLE),
        (
            "a: int",
            "schema: expected the type of column a, found ':' at character 2" + EXAMPLE,
        ),
        (
            "a int b int",
            "schema: expected a comma or the end, found 'b' at character 7" + EXAMPLE,
        ),
        (
            "a int;",
            "schema: expected a comma or the end, found ';' at character 6" + EXAMPLE,
        ),
        ("a-b int", "schema: a-b at character 1 is no plain name; write `a-b`"),
        ("é int", "schema: é at character 1 is no plain name; write `é`"),
        ("1d int", "schema: 1d at character 1 is no plain name; write `1d`"),
        ("`a int", "schema: ` at character 1 has no second one that ends what it begins"),
        ("a int comment 'x", "schema: ' at character 15 has no second one that ends what it begins"),
        ("a int /* x", "schema: the comment at character 7 has no end; close it with */"),
        ("a array", "column a: array lacks what it is made of; write e.g. array<int>"),
        ("a `int`", "column a: there is no type `int`; types stand without backticks"),
        ("a bool", "column a: there is no type 'bool'; did you mean boolean?"),
        ("a s.t", "schema: s.t at character 3 is no plain name; write `s.t`"),
        (
            "a xyz",
            "column a: there is no type 'xyz'; types are boolean, tinyint, smallint, int, bigint, float, "
            "double, decimal, string, binary, date, timestamp, timestamp_ntz, array, map, struct",
        ),
        ("a int(5)", "column a: type int(5) is not supported; use int"),
        (
            "a decimal(39)",
            "column a: decimal(39) is not supported; use decimal(digits,digits after the point), with 1 to "
            "38 digits, of which no more than all are after the point",
        ),
        (
            "a int not 5",
            "schema: expected NULL after NOT, found '5' at character 11" + EXAMPLE,
        ),
        (
            "a int comment b",
            "schema: expected a text in quotes after COMMENT, found 'b' at character 15" + EXAMPLE,
        ),
    ],
)
def test_bad_ddl_is_refused_with_its_place(ddl: str, message: str) -> None:
    with pytest.raises(SchemaError) as refusal:
        parse_ddl(ddl)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("of_type", "message"),
    [
        ("void", "type void is not supported; give the type that the values will have"),
        ("time", "type time is not supported; use timestamp_ntz, or bigint with the unit in the name"),
        ("time(3)", "type time is not supported; use timestamp_ntz, or bigint with the unit in the name"),
        ("interval", "type interval is not supported; use bigint with the unit in the name"),
        ("interval day to second", "type interval is not supported; use bigint with the unit in the name"),
        ("variant", "type variant is not supported; use string with JSON, or a struct"),
        ("char(3)", "type char is not supported; use string"),
        ("varchar(3)", "type varchar is not supported; use string"),
        (
            "string collate UNICODE_CI",
            "collation UNICODE_CI is not supported; use string without a collation",
        ),
        ("geometry(4326)", "type geometry is not supported; use binary with WKB"),
        ("geography(any)", "type geography is not supported; use binary with WKB"),
    ],
)
def test_types_of_spark_that_a_topic_cannot_have_are_named(of_type: str, message: str) -> None:
    with pytest.raises(SchemaError) as refusal:
        parse_ddl(f"id int, s struct<`a b`: array<{of_type}>>")
    assert str(refusal.value) == f"column s.`a b`.element: {message}"


def test_a_type_of_more_levels_than_the_limit_is_refused() -> None:
    assert parse_ddl("a " + "array<" * 31 + "int" + ">" * 31)
    with pytest.raises(SchemaError, match="types are at most 32 levels deep; take levels out"):
        parse_ddl("a " + "array<" * 100_000)


def test_a_text_beyond_all_schemas_is_not_parsed() -> None:
    with pytest.raises(SchemaError, match="the schema has 400,001 characters, at most 400,000 are allowed"):
        parse_schema("a" * (TEXT_CHARACTERS_MAX + 1))


@given(st.text(max_size=40) | st.text("a `'\"<>(),:!\\/*-0rint", max_size=30))
def test_any_text_is_columns_or_a_refusal(text: str) -> None:
    with suppress(SchemaError):
        assert parse_schema(text)
