import pytest
from hypothesis import given, settings

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import NO_ID, Columns, Scalar, all_fields
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.fitting import fit, widens
from sparklog.model.schema.new_schema import new_schema
from tests.model.schema.schema_strategies import schemas

TOPIC = new_schema(
    parse_ddl(
        "id bigint NOT NULL, mag double, s struct<a: int, b: array<float>>, m map<string, decimal(10,2)>"
    )
).at(1)


def fitted(ddl: str, void: tuple[str, ...] = ()) -> Columns:
    return fit(parse_ddl(ddl), TOPIC, void)


@settings(deadline=None)
@given(columns=schemas)
def test_a_topics_own_columns_fit_and_have_its_ids(columns: Columns):
    topic = new_schema(columns).at(1)
    fits = fit(columns, topic)
    assert [field.id for field in all_fields(fits)] == [field.id for field in all_fields(topic)]
    assert NO_ID not in {field.id for field in all_fields(fits)}


def test_columns_fit_by_name_in_any_order_and_those_that_may_be_null_may_be_missing():
    assert [(field.name, field.id) for field in fitted("mag double, id bigint")] == [("mag", 2), ("id", 1)]
    assert [field.name for field in fitted("id int", void=("mag", "s"))] == ["id"]
    (_, s) = fitted("id int, s struct<b: array<float>>")
    assert [field.id for field in all_fields((s,))] == [3, 5]


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("tinyint", "smallint"),
        ("smallint", "bigint"),
        ("int", "bigint"),
        ("float", "double"),
        ("date", "timestamp_ntz"),
    ],
)
def test_a_type_widens_in_one_direction(narrow: str, wide: str):
    assert widens(Scalar(narrow), Scalar(wide))
    assert not widens(Scalar(wide), Scalar(narrow))


def test_decimals_widen_to_no_fewer_digits_on_both_sides_of_the_point():
    assert widens(Scalar("decimal", 8, 2), Scalar("decimal", 10, 2))
    assert widens(Scalar("decimal", 8, 2), Scalar("decimal", 10, 4))
    assert not widens(Scalar("decimal", 8, 2), Scalar("decimal", 10, 6))
    assert not widens(Scalar("decimal", 8, 2), Scalar("decimal", 10, 1))


@pytest.mark.parametrize(
    ("ddl", "void", "words"),
    [
        ("id bigint, extra int", (), "column extra is not among the topic's"),
        ("id bigint, x int, Mag double", ("y",), r"columns x, Mag \(near mag\), y are not among"),
        ("id bigint, s struct<a: int, c: int>", (), r"column s\.c is not among"),
        ("id string", (), "column id is string and bigint in the topic: types are equal or widen; cast it"),
        ("id bigint, mag bigint", (), "column mag is bigint and double"),
        ("id bigint, s struct<b: array<double>>", (), r"column s\.b\.element is double and float"),
        ("id bigint, m map<int, decimal(10,2)>", (), r"column m\.key is int and string"),
        ("id bigint, m string", (), "column m is string and map<string, decimal"),
        ("mag double", (), "column id is NOT NULL in the topic, and not among those that are written"),
        ("mag double", ("id",), "column id is NOT NULL"),
        ("id bigint, id bigint", (), "column id is there more than once"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_names(ddl: str, void: tuple[str, ...], words: str):
    with pytest.raises(SchemaError, match=words):
        fitted(ddl, void)


def test_a_name_that_a_column_had_before_comes_with_its_present_one():
    with pytest.raises(SchemaError, match=r"columns size \(renamed to mag\), Mag \(near mag\) are not among"):
        fit(parse_ddl("size double, Mag double"), parse_ddl("mag double"), renamed={"size": "mag"})


def test_of_many_names_some_are_shown():
    with pytest.raises(SchemaError, match=r"x9, and 5 more are not among"):
        fitted("id bigint, " + ", ".join(f"x{n} int" for n in range(15)))
