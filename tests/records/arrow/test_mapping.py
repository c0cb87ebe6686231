import datetime
import decimal
import re

import pyarrow as pa
import pytest

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import Array, Field, Map, Scalar, Struct
from sparklog.records.arrow.arrow_types import arrow_type
from sparklog.records.arrow.mapping import mapped, mapped_columns

INT, BIGINT, TEXT = Scalar("int"), Scalar("bigint"), Scalar("string")


def field(name: str, data_type: object, number: int) -> Field:
    return Field(name, data_type, id=number)


OWN = Struct((field("x", INT, 1), field("gone", TEXT, 2)))
NEW = Struct((field("added", Map(TEXT, INT), 3), field("renamed", BIGINT, 1)))


def test_fields_are_found_by_their_ids_whatever_their_names_and_order():
    rows = pa.array(
        [{"x": 1, "gone": "a"}, None, {"x": None, "gone": "b"}, {"x": 4, "gone": None}], arrow_type(OWN)
    )
    found = mapped(rows.slice(1), OWN, NEW)
    found.validate(full=True)
    assert found.type == arrow_type(NEW)
    assert found.to_pylist() == [None, {"added": None, "renamed": None}, {"added": None, "renamed": 4}]


def test_what_is_within_arrays_and_maps_is_mapped_too():
    rows = pa.array([[], None, [{"x": 3, "gone": "a"}, None]], arrow_type(Array(OWN))).slice(1)
    found = mapped(rows, Array(OWN), Array(NEW))
    found.validate(full=True)
    assert found.to_pylist() == [None, [{"added": None, "renamed": 3}, None]]
    pairs = pa.array([[("a", 1)], [("b", None), ("c", 2)]], arrow_type(Map(TEXT, INT))).slice(1)
    found = mapped(pairs, Map(TEXT, INT), Map(TEXT, BIGINT))
    found.validate(full=True)
    assert (found.type, found.to_pylist()) == (arrow_type(Map(TEXT, BIGINT)), [[("b", None), ("c", 2)]])


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (7, Scalar("tinyint"), BIGINT, 7),
        (1.5, Scalar("float"), Scalar("double"), 1.5),
        (decimal.Decimal("1.50"), Scalar("decimal", 4, 2), Scalar("decimal", 9, 3), decimal.Decimal("1.500")),
        (
            datetime.date(2024, 1, 2),
            Scalar("date"),
            Scalar("timestamp_ntz"),
            datetime.datetime.fromisoformat("2024-01-02"),
        ),
        (7, BIGINT, INT, 7),
        (0.5, Scalar("double"), Scalar("float"), 0.5),
    ],
)
def test_a_value_that_the_other_type_holds_is_the_same_there(value, source, target, expected):
    found = mapped(pa.array([value, None], arrow_type(source)), source, target)
    assert (found.type, found.to_pylist()) == (arrow_type(target), [expected, None])


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (2**40, BIGINT, INT),
        (0.1, Scalar("double"), Scalar("float")),
        (1e300, Scalar("double"), Scalar("float")),
        (decimal.Decimal("123.45"), Scalar("decimal", 5, 2), Scalar("decimal", 4, 2)),
        (datetime.datetime.fromisoformat("2024-01-02T03:00"), Scalar("timestamp_ntz"), Scalar("date")),
    ],
)
def test_a_value_that_the_narrower_type_cannot_hold_is_an_error(value, source, target):
    present = {1: pa.array([None, value], arrow_type(source))}
    words = re.escape(f"column c has the value {value}, which {target} cannot hold")
    with pytest.raises(SchemaError, match=words):
        mapped_columns(present, (field("c", source, 1),), (field("c", target, 1),), 2)


def test_nan_is_a_float_as_well():
    found = mapped(pa.array([float("nan"), -0.0]), Scalar("double"), Scalar("float"))
    assert repr(found.to_pylist()) == "[nan, -0.0]"


def test_what_the_source_lacks_is_null_and_what_the_target_does_not_know_is_left_out():
    present = {1: pa.array([1, 2], pa.int32())}
    columns = mapped_columns(present, (field("a", INT, 1),), (field("b", TEXT, 2), field("c", INT, 1)), 2)
    assert [column.to_pylist() for column in columns] == [[None, None], [1, 2]]
