"""Columns of nulls in an ``.arrow`` object: all their buffers lie upon the same zeros."""

from collections.abc import Sequence
from itertools import chain
from typing import Final

from sparklog.model.schema.data_types import Array, DataType, Map, Scalar, Struct
from sparklog.records.arrow.arrow_types import arrow_type
from sparklog.records.arrow.layout import Node, Region
from sparklog.records.remote_segment.rows_message import EMPTY, FileColumn, GrowingBody

_OFFSET_BYTES: Final = 4
_WITH_OFFSETS: Final = ("string", "binary")

_Parts = tuple[list[Node], list[int]]
"""The nodes of a column, and the lengths of its buffers."""


def add_nulls(body: GrowingBody, types: Sequence[DataType]) -> list[FileColumn]:
    """A column of nulls for each of these types."""
    parts = [_of_type(one, body.layout.row_count) for one in types]
    if not parts:
        return []
    zeros = body.add(bytes(max(chain.from_iterable(lengths for _, lengths in parts))))

    def upon_zeros(length: int) -> Region:
        if not length:
            return EMPTY
        return zeros if body.layout.is_compressed else Region(zeros.offset, length)

    return [FileColumn(nodes, [upon_zeros(length) for length in lengths]) for nodes, lengths in parts]


def _of_type(data_type: DataType, count: int) -> _Parts:
    nodes, validity = [Node(count, count)], _bytes_of(count)
    offsets = _OFFSET_BYTES * (count + 1)
    match data_type:
        case Scalar(name) if name in _WITH_OFFSETS:
            return nodes, [validity, offsets, 0]
        case Scalar():
            return nodes, [validity, _bytes_of(count * arrow_type(data_type).bit_width)]
        case Array(element):
            return _joined((nodes, [validity, offsets]), _of_type(element, 0))
        case Map(key, value):
            entries: _Parts = [Node(0, 0)], [0]
            return _joined((nodes, [validity, offsets]), entries, _of_type(key, 0), _of_type(value, 0))
        case Struct(fields):
            return _joined((nodes, [validity]), *(_of_type(field.type, count) for field in fields))


def _joined(*parts: _Parts) -> _Parts:
    return [node for nodes, _ in parts for node in nodes], [one for _, lengths in parts for one in lengths]


def _bytes_of(bits: int) -> int:
    return -(-bits // 8)
