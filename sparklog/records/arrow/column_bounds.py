"""The least and greatest value of a batch's columns, by which a replica sees that no row of it is wanted.

Integers, days, times, booleans and decimals are whole numbers as in ``model.schema.predicates``, floats are
doubles, texts and bytes are cut to 64 bytes, and the greatest is rounded up then. A column with a NaN has no
bounds, because Arrow passes over NaN, and nor has one of several values in a row.
"""

import struct
from collections.abc import Mapping
from decimal import Context
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sparklog.model.schema.predicates.tree import Value

TEXT_BYTES_MAX: Final = 64
ROWS_MIN: Final = 2
"""A single row may be as large as a topic takes; bounds would make it larger."""
SHARE_OF_BATCH: Final = 10
"""Bounds take at most this part of the Arrow message, or there are none."""

_DOUBLE: Final = struct.Struct("<d")
_NUMBER_BYTES: Final = 8
_DECIMAL_BYTES: Final = 16
_DIGITS: Final = Context(prec=76)


class Bounds(NamedTuple):
    """The bytes of both, as the header has them; None if there is no such bound."""

    least: bytes | None
    greatest: bytes | None


NO_BOUNDS: Final = Bounds(None, None)


def bounds_of(columns: Mapping[int, Any], message_bytes: int) -> dict[int, Bounds]:
    """The bounds of arrays, by their ids; none for small batches."""
    found: dict[int, Bounds] = {}
    if not columns or len(next(iter(columns.values()))) < ROWS_MIN:
        return found
    for number, column in columns.items():
        if column.null_count < len(column) and not pa.types.is_nested(column.type):
            bounds = _bounds(column)
            if bounds is not None:
                found[number] = bounds
    sizes = sum(len(bound or b"") for bounds in found.values() for bound in bounds)
    return found if sizes * SHARE_OF_BATCH <= message_bytes else {}


def _bounds(column: Any) -> Bounds | None:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        least, greatest = _least_and_greatest(column.cast(pa.binary()))
        return Bounds(least[:TEXT_BYTES_MAX], _rounded_up(greatest))
    if pa.types.is_floating(kind):
        if _has_nan(column):
            return None
        return Bounds(*map(_DOUBLE.pack, _least_and_greatest(column)))
    if pa.types.is_timestamp(kind):
        column = column.view(pa.int64())
    elif pa.types.is_date(kind):
        column = column.view(pa.int32())
    least, greatest = _least_and_greatest(column)
    if pa.types.is_decimal(kind):
        whole = (int(_DIGITS.scaleb(value, kind.scale)) for value in (least, greatest))
        return Bounds(*(value.to_bytes(_DECIMAL_BYTES, "little", signed=True) for value in whole))
    return Bounds(*(int(one).to_bytes(_NUMBER_BYTES, "little", signed=True) for one in (least, greatest)))


def _has_nan(column: Any) -> bool:
    return bool(pc.any(pc.is_nan(column)).as_py())


def _least_and_greatest(column: Any) -> tuple[Any, Any]:
    found = pc.min_max(column)
    return found["min"].as_py(), found["max"].as_py()


def _rounded_up(text: bytes) -> bytes | None:
    """The text, or the least one of at most 64 bytes that is greater than all that begin as it does."""
    if len(text) <= TEXT_BYTES_MAX:
        return text
    kept = text[:TEXT_BYTES_MAX].rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def value_of_bound(bound: bytes, like: Value) -> Value | None:
    """A bound as a value of the kind of ``like``; None if it is of another kind."""
    if isinstance(like, bytes):
        return bound
    if isinstance(like, float):
        return float(_DOUBLE.unpack(bound)[0]) if len(bound) == _DOUBLE.size else None
    is_whole = len(bound) in (_NUMBER_BYTES, _DECIMAL_BYTES)
    return int.from_bytes(bound, "little", signed=True) if is_whole else None
