"""Conditions as bytes: what is packed comes back, and what is none is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.model.errors import SchemaError
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.new_schema import new_schema
from sparklog.model.schema.predicates.packed import PACKED_BYTES_MAX, pack, unpack
from sparklog.model.schema.predicates.parser import DEPTH_MAX, TERMS_MAX, parse_condition
from sparklog.model.schema.predicates.tree import Condition, Operator, Term, terms_of

COLUMNS = new_schema(parse_ddl("id bigint, mag double, place string, price decimal(38,0)")).at(1)


def condition(text: str) -> Condition:
    return parse_condition(text, COLUMNS)


def without_names(found: Condition) -> list[object]:
    return [(term.column.id, term.operator, term.values) for term in terms_of(found)]


@pytest.mark.parametrize(
    "text",
    [
        "id = -9223372036854775808",
        "mag < 'NaN' or mag in (1, -2.5) and not place like 'ä%'",
        "place is null or place is not null and place not in ('', 'x')",
        f"price = {'9' * 38} or price = -{'9' * 38}",
        "(" * (DEPTH_MAX - 1) + "id between 1 and 2 or id = 3" + ")" * (DEPTH_MAX - 1),
        "not (id between 1 and 2 and (mag > 1 or (id > 1 and (mag > 2 or id = 1))))",
    ],
)
def test_what_is_packed_comes_back(text: str) -> None:
    found = unpack(pack(condition(text), 7))
    assert found.version == 7
    assert repr(without_names(found.condition)) == repr(without_names(condition(text)))
    assert pack(found.condition, 7) == pack(condition(text), 7)


def test_a_condition_that_is_too_large_is_not_sent() -> None:
    assert pack(condition(f"place = '{'x' * 199_000}'"), 1)
    large = Term(COLUMNS[2], Operator.EQUAL, (b"x" * PACKED_BYTES_MAX,))
    assert pack(large, 1) == b""


VERSION = struct.pack("<I", 1)
TERM = struct.Struct("<BBiH")
ONE = b"\0" + bytes(16)


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (b"", "ends too soon"),
        (VERSION, "ends too soon"),
        (VERSION + b"\3\0\0", "kind 3"),
        (VERSION + b"\0\0\0", "0 parts"),
        (VERSION + b"\0\1\0" * 66 + TERM.pack(2, 10, 1, 0), "at depth"),
        (VERSION + TERM.pack(2, 12, 1, 0), "ends too soon"),
        (VERSION + TERM.pack(2, 0, 1, 0), "0 values for ="),
        (VERSION + TERM.pack(2, 10, 1, 1) + ONE, "1 values for is null"),
        (VERSION + TERM.pack(2, 0, 1, 2) + ONE * 2, "2 values for ="),
        (VERSION + TERM.pack(2, 6, 1, TERMS_MAX + 1) + ONE * (TERMS_MAX + 1), "1001 values for in"),
        (VERSION + TERM.pack(2, 6, 1, 2) + ONE + b"\1" + bytes(8), "of several types"),
        (VERSION + TERM.pack(2, 0, 1, 1) + b"\3" + bytes(16), "a value of kind 3"),
        (VERSION + TERM.pack(2, 0, 1, 1) + b"\2\xff\xff\xff\xffx", "1 of 4294967295 bytes"),
        (VERSION + TERM.pack(2, 0, 1, 1) + ONE[:-1], "15 of 16 bytes"),
        (VERSION + TERM.pack(2, 10, 1, 0) + b"x", "of 12 bytes in 13|in 13"),
        (bytes(PACKED_BYTES_MAX + 1), "at most 262,144"),
    ],
)
def test_what_is_no_condition_is_refused(packed: bytes, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        unpack(packed)


@given(packed=st.binary(max_size=60))
def test_any_bytes_are_a_condition_or_refused(packed: bytes) -> None:
    try:
        found = unpack(VERSION + packed)
    except SchemaError:
        return
    assert pack(found.condition, 1)
