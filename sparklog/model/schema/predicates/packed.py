"""Conditions as bytes, for the tag of a fetch that names them. All numbers are little-endian.

    condition:  u32 version of the columns, node
    node:       u8 0 (all) or 1 (either), u16 count, nodes
                u8 2 (term), u8 operator, i32 column id, u16 count, values
    value:      u8 0 (whole number, 16 bytes), 1 (double) or 2 (bytes: u32 length, bytes)

Operators are numbered in the order of ``Operator``. Names and types stay with the reader.
"""

import struct
from functools import lru_cache
from typing import Final, NamedTuple

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import Field, Scalar
from sparklog.model.schema.predicates.parser import DEPTH_MAX, TERMS_MAX
from sparklog.model.schema.predicates.tree import All, Condition, Either, Operator, Term, Value

PACKED_BYTES_MAX: Final = 256 * 1024
"""A larger condition is not sent, and refused: readers judge it alone."""

_VERSION: Final = struct.Struct("<I")
_GROUP: Final = struct.Struct("<BH")
_TERM: Final = struct.Struct("<BBiH")
_DOUBLE: Final = struct.Struct("<d")
_LENGTH: Final = struct.Struct("<I")
_WHOLE_BYTES: Final = 16
_ALL, _EITHER, _TERM_KIND = range(3)
_WHOLE, _REAL, _BYTES = range(3)
_OPERATORS: Final = tuple(Operator)
_NUMBERS: Final = {operator: number for number, operator in enumerate(_OPERATORS)}
_WITHOUT_VALUES: Final = (Operator.NULL, Operator.NOT_NULL)
_SEVERAL: Final = (Operator.IN, Operator.NOT_IN)
_UNKNOWN_TYPE: Final = Scalar("")


class PackedCondition(NamedTuple):
    """Its columns have ids alone, in this version of the topic's columns."""

    version: int
    condition: Condition
    terms: int
    """Its terms, each with as many values as it has, but at least one."""


def pack(condition: Condition, version: int) -> bytes:
    """The bytes; empty for a condition that is too large to be sent."""
    packed = _VERSION.pack(version) + _pack(condition)
    return packed if len(packed) <= PACKED_BYTES_MAX else b""


def _pack(condition: Condition) -> bytes:
    if isinstance(condition, Term):
        head = _TERM.pack(
            _TERM_KIND, _NUMBERS[condition.operator], condition.column.id, len(condition.values)
        )
        return head + b"".join(map(_pack_value, condition.values))
    kind = _ALL if isinstance(condition, All) else _EITHER
    return _GROUP.pack(kind, len(condition.parts)) + b"".join(map(_pack, condition.parts))


def _pack_value(value: Value) -> bytes:
    if isinstance(value, bytes):
        return bytes([_BYTES]) + _LENGTH.pack(len(value)) + value
    if isinstance(value, float):
        return bytes([_REAL]) + _DOUBLE.pack(value)
    return bytes([_WHOLE]) + value.to_bytes(_WHOLE_BYTES, "little", signed=True)


@lru_cache(maxsize=64)
def unpack(packed: bytes) -> PackedCondition:
    """The condition; SchemaError for bytes that are none, or one that is too large."""
    if len(packed) > PACKED_BYTES_MAX:
        raise SchemaError(f"a condition of {len(packed):,} bytes; at most {PACKED_BYTES_MAX:,} are taken")
    reader = _Reader(packed)
    try:
        (version,) = reader.take(_VERSION)
        found = reader.node(1)
    except (struct.error, IndexError):
        raise SchemaError(f"a condition of {len(packed)} bytes that ends too soon") from None
    if reader.position != len(packed):
        raise SchemaError(f"a condition of {reader.position} bytes in {len(packed)}")
    return PackedCondition(version, found, reader.terms)


class _Reader:
    def __init__(self, packed: bytes) -> None:
        self.position = 0
        self._packed = packed
        self.terms = 0

    def take(self, form: struct.Struct) -> tuple[int, ...]:
        found: tuple[int, ...] = form.unpack_from(self._packed, self.position)
        self.position += form.size
        return found

    def node(self, depth: int) -> Condition:
        kind = self._packed[self.position]
        if kind == _TERM_KIND:
            return self._term()
        kind, count = self.take(_GROUP)
        # What stands in one pair of parentheses may be a group of groups.
        if kind not in (_ALL, _EITHER) or depth > 2 * DEPTH_MAX + 1 or not count:
            raise SchemaError(f"a condition with a node of kind {kind} and {count} parts at depth {depth}")
        parts = tuple(self.node(depth + 1) for _ in range(count))
        return All(parts) if kind == _ALL else Either(parts)

    def _term(self) -> Term:
        _, number, column, count = self.take(_TERM)
        operator = _OPERATORS[number]
        self.terms += max(count, 1)
        fits = not count if operator in _WITHOUT_VALUES else count == 1 or (count and operator in _SEVERAL)
        if not fits or self.terms > TERMS_MAX:
            raise SchemaError(f"a condition with {count} values for {operator.value}, {self.terms} in all")
        values = tuple(self._value() for _ in range(count))
        if len({type(value) for value in values}) > 1:
            raise SchemaError("a condition with a term whose values are of several types")
        return Term(Field("", _UNKNOWN_TYPE, id=column), operator, values)

    def _value(self) -> Value:
        kind = self._packed[self.position]
        self.position += 1
        if kind == _REAL:
            return float(self.take(_DOUBLE)[0])
        length = _WHOLE_BYTES if kind == _WHOLE else self.take(_LENGTH)[0]
        found = self._packed[self.position : self.position + length]
        self.position += length
        if kind not in (_WHOLE, _BYTES) or len(found) < length:
            raise SchemaError(f"a condition with a value of kind {kind} and {len(found)} of {length} bytes")
        return bytes(found) if kind == _BYTES else int.from_bytes(found, "little", signed=True)
