"""Decodes a batch's *arrow* payload, version 2: rows of a typed topic, by the document of its columns."""

import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from histories.arrow_payload import FIXED, nulls_of_columns, opened, read_message
from histories.soundness import DamagedBatchError, crc32c
from histories.typed.cells import text_of
from histories.typed.columns import TopicColumns, nodes_and_buffers

KIND_AND_VERSION: Final = (1, 2)
MORE_FIXED: Final = struct.Struct("<IHBB")
"""Behind what version 1 has: CRC of the envelope's bytes 21 to 60, length of the fixed part, unit, 0."""
FIXED_BYTES: Final = FIXED.size + MORE_FIXED.size
MICROSECONDS: Final = 6

Row = tuple[int, str, Mapping[int, str]]
"""Offset, the text of the key column, and the cells of the other columns that are not null."""


def typed_rows(
    envelope: bytes, payload: bytes, columns: TopicColumns, base_offset: int, count: int, last_delta: int
) -> Iterator[Row]:
    """``envelope``: the batch's bytes 21 to 60."""
    try:
        yield from _typed_rows(envelope, payload, columns, base_offset, count, last_delta)
    except (pa.ArrowException, OSError) as error:
        raise DamagedBatchError(f"its Arrow message cannot be read: {error}") from error


def _typed_rows(
    envelope: bytes, payload: bytes, columns: TopicColumns, base_offset: int, count: int, last_delta: int
) -> Iterator[Row]:
    parts = opened(payload, count, last_delta)
    fixed = parts.fixed
    if (fixed.kind, fixed.version) != KIND_AND_VERSION:
        raise DamagedBatchError(f"kind {fixed.kind}, version {fixed.version} in a typed topic")
    envelope_crc, fixed_bytes, unit, zero = MORE_FIXED.unpack_from(parts.header, FIXED.size)
    if (fixed_bytes, unit, zero) != (FIXED_BYTES, MICROSECONDS, 0):
        raise DamagedBatchError(f"a fixed part of {fixed_bytes} bytes, unit {unit}, {zero}")
    if crc32c(envelope) != envelope_crc:
        raise DamagedBatchError("the CRC of the envelope in the arrow header is wrong")
    if (fixed.key, fixed.timestamp) != (columns.key, columns.timestamp):
        raise DamagedBatchError(f"key {fixed.key} and timestamp {fixed.timestamp} are not the topic's")
    there = columns.at(fixed.schema)
    shapes = {number: nodes_and_buffers(column.arrow_type) for number, column in there.items()}
    nulls = nulls_of_columns(parts, FIXED_BYTES, shapes)
    schema = pa.schema([pa.field(str(number), there[number].arrow_type) for number in nulls])
    read = read_message(parts, schema, nulls)
    values: dict[int, list[Any]] = {number: read.column(str(number)).to_pylist() for number in nulls}
    if columns.key not in values:
        raise DamagedBatchError("rows without a key column have no names")
    names = values.pop(columns.key)
    for nth, (delta, name) in enumerate(zip(parts.deltas, names, strict=True)):
        given = {number: some[nth] for number, some in values.items()}
        cells = {number: text_of(value) for number, value in given.items() if value is not None}
        yield base_offset + delta, str(name), cells
