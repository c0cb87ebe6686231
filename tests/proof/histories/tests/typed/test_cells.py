"""One text for a value, whoever shows it, and however wide its column has become."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from histories.typed.cells import text_of, text_of_json

MIDNIGHT = datetime(2024, 2, 29, tzinfo=UTC).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (Decimal("1.50"), Decimal("1.500")),
        (Decimal(100), Decimal("100.00")),
        (date(2024, 2, 29), MIDNIGHT),
    ],
)
def test_a_widened_value_keeps_its_text(narrow, wide):
    assert text_of(narrow) == text_of(wide)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("bigint", 1 << 60, "1152921504606846976"),
        ("double", 0.25, "0.25"),
        ("float", float("nan"), '"NaN"'),
        ("double", float("-inf"), '"-Infinity"'),
        ("decimal(9,3)", Decimal("1.5"), "1.500"),
        ("boolean", True, "true"),
        ("string", 'a "b"', '"a \\"b\\""'),
        ("binary", b"ab", '"YWI="'),
        ("date", date(2024, 2, 29), '"2024-02-29"'),
        ("timestamp", datetime(2024, 2, 29, 12, tzinfo=UTC), '"2024-02-29T12:00:00.000000Z"'),
        ("timestamp_ntz", MIDNIGHT, '"2024-02-29T00:00:00.000000"'),
        ({"array": "int"}, [1, None], "[1,null]"),
    ],
)
def test_json_has_the_text_of_the_value(kind, value, text):
    assert text_of_json(kind, json.loads(text, parse_float=Decimal)) == text_of(value)
