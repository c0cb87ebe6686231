"""The header of an *arrow* payload: our own format, versioned, with a directory of the columns.

docs/format/batch.md describes it byte for byte. In short, all little-endian:

    fixed part | column directory | offset deltas, if any | bounds, if any | zeros
    | Arrow IPC record-batch message: metadata, body

The fixed part has 48 bytes in version 1, for rows of untyped topics. Version 2, for typed ones, appends the
CRC of the envelope's bytes 21 to 60 (``envelope_crc``), the fixed part's own length, and the unit of times.

The directory holds the region of each column in the body and its CRC-32C, so that a reader can fetch single
columns and verify them, and the places of its least and greatest value (``column_bounds``). Offset deltas are
present only if offsets have gaps: without them row n has offset delta n.

A reader refuses an unknown kind or version. Within a version the directory's entries may grow at their ends,
and within version 2 the fixed part, because the header contains both lengths.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from crc32c import crc32c

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.column_bounds import NO_BOUNDS, Bounds
from sparklog.records.arrow.envelope_crc import (
    ENVELOPE_CRC_POSITION,
    FIXED_BYTES_MIN,
    VERSION_POSITION,
    header_crc,
)
from sparklog.records.envelope import ENVELOPE_BYTES, BatchHeader, Bytes
from sparklog.records.payload_kinds import ARROW_VERSION, TYPED_ARROW_VERSION, PayloadKind
from sparklog.records.row_columns import Int64s

FIXED: Final = struct.Struct("<BBHIIIIHHiiIIII")
"""Kind, version, flags, header length, header CRC, schema id, row count, column count, entry length, key
column, timestamp column, metadata length, body length, offset deltas position, metadata CRC."""
assert FIXED.size == 48

ADDED: Final = struct.Struct("<IHBx")
"""What version 2 adds to the fixed part: envelope CRC, length of the fixed part, unit of timestamps."""
assert (FIXED.size, FIXED.size + ADDED.size) == (ENVELOPE_CRC_POSITION, FIXED_BYTES_MIN)

ENTRY: Final = struct.Struct("<iIIIIHHHHIIIII")
"""Column id, region offset, region length, region CRC, null count, first node, node count, first buffer,
buffer count, uncompressed length, min position, min length, max position, max length."""
assert ENTRY.size == 48

CRC: Final = struct.Struct("<I")
CRC_POSITION: Final = 8
_SCHEMA_ID: Final = struct.Struct("<I")
_SCHEMA_ID_POSITION: Final = 12
MILLISECONDS: Final = 3
MICROSECONDS: Final = 6
"""Units of timestamps: digits after the point of a second."""

OFFSET_DELTAS_FLAG: Final = 1
KNOWN_FLAGS: Final = OFFSET_DELTAS_FLAG
DELTA: Final = np.dtype("<i4")
NO_COLUMN: Final = -1
UNTYPED_SCHEMA: Final = 0
_ALIGNMENT: Final = 8


class ColumnEntry(NamedTuple):
    """One column: its region in the body, and its nodes and buffers in the Arrow message.

    Positions of the least and greatest value are relative to the payload's start; 0 means absent.
    """

    column_id: int
    offset: int
    length: int
    crc: int
    null_count: int
    first_node: int
    node_count: int
    first_buffer: int
    buffer_count: int
    uncompressed_length: int
    min_position: int = 0
    min_length: int = 0
    max_position: int = 0
    max_length: int = 0


@dataclass(frozen=True, slots=True)
class ArrowHeader:
    """The header before the Arrow message. ``offset_deltas`` None: offsets without gaps.

    ``schema_id``: 0 in version 1; in version 2 the version of the topic's columns.
    """

    schema_id: int
    row_count: int
    key_column: int
    timestamp_column: int
    metadata_length: int
    body_length: int
    metadata_crc: int
    columns: tuple[ColumnEntry, ...]
    offset_deltas: Int64s | None
    header_length: int = 0
    version: int = ARROW_VERSION
    envelope_crc: int = 0
    timestamp_unit: int = MILLISECONDS
    bounds: Mapping[int, Bounds] = field(default_factory=dict)
    """The least and greatest values of columns, by their ids."""

    def pack(self) -> bytes:
        """The header's bytes, padded so that the Arrow message is aligned within the batch."""
        deltas = b"" if self.offset_deltas is None else self.offset_deltas.astype(DELTA).tobytes()
        added = self._added()
        deltas_position = FIXED.size + len(added) + ENTRY.size * len(self.columns)
        bounds_position = deltas_position + len(deltas)
        columns, bounds = self._placed_bounds(bounds_position)
        header_length = bounds_position + len(bounds)
        header_length += -(ENVELOPE_BYTES + header_length) % _ALIGNMENT
        fixed = FIXED.pack(
            PayloadKind.ARROW,
            self.version,
            0 if self.offset_deltas is None else OFFSET_DELTAS_FLAG,
            header_length,
            0,
            self.schema_id,
            self.row_count,
            len(self.columns),
            ENTRY.size,
            self.key_column,
            self.timestamp_column,
            self.metadata_length,
            self.body_length,
            0 if self.offset_deltas is None else deltas_position,
            self.metadata_crc,
        )
        packed = bytearray(header_length)
        packed[:deltas_position] = b"".join((fixed, added, *(ENTRY.pack(*column) for column in columns)))
        packed[deltas_position:bounds_position] = deltas
        packed[bounds_position : bounds_position + len(bounds)] = bounds
        CRC.pack_into(packed, CRC_POSITION, header_crc(packed))
        return bytes(packed)

    def _placed_bounds(self, position: int) -> tuple[list[ColumnEntry], bytes]:
        """The directory's entries with the places of their bounds, which begin at ``position``."""
        placed: list[ColumnEntry] = []
        packed = bytearray()
        for entry in self.columns:
            least, greatest = self.bounds.get(entry.column_id, NO_BOUNDS)
            if least is not None:
                entry = entry._replace(min_position=position + len(packed), min_length=len(least))
                packed += least
            if greatest is not None:
                entry = entry._replace(max_position=position + len(packed), max_length=len(greatest))
                packed += greatest
            placed.append(entry)
        return placed, bytes(packed)

    def _added(self) -> bytes:
        if self.version == ARROW_VERSION:
            return b""
        return ADDED.pack(self.envelope_crc, FIXED.size + ADDED.size, self.timestamp_unit)


class DamagedColumn(CorruptBatch):
    """The bytes of one column are not those that its CRC was made of."""

    def __init__(self, entry: ColumnEntry) -> None:
        super().__init__(f"the CRC {entry.crc:#010x} of column {entry.column_id} does not match")
        self.column_id = entry.column_id


def parse_arrow_header(payload: Bytes, *, is_partial: bool = False) -> ArrowHeader:
    """The header at the start of an arrow payload, with its CRC checked; CorruptBatch if it is malformed.

    ``is_partial``: not all of the Arrow message follows, and the caller compares its length.
    """
    if len(payload) < FIXED.size:
        raise CorruptBatch(f"an arrow payload of {len(payload)} bytes is shorter than its header")
    (
        kind, version, flags, header_length, crc, schema_id, row_count, column_count, entry_length,
        key_column, timestamp_column, metadata_length, body_length, deltas_position, metadata_crc,
    ) = FIXED.unpack_from(payload)  # fmt: skip
    if kind != PayloadKind.ARROW or version not in (ARROW_VERSION, TYPED_ARROW_VERSION):
        raise CorruptBatch(
            f"payload kind {kind}, version {version} is unknown to this release; a newer one may read it"
        )
    if not FIXED.size <= header_length <= len(payload):
        raise CorruptBatch(f"an arrow header of {header_length} bytes in a payload of {len(payload)}")
    header = memoryview(payload)[:header_length]
    if header_crc(header) != crc:
        raise CorruptBatch(f"the CRC {crc:#010x} of the arrow header does not match")
    has_all = is_partial or metadata_length + body_length == len(payload) - header_length
    if flags & ~KNOWN_FLAGS or not has_all:
        raise CorruptBatch(
            f"an arrow header with flags {flags:#06x}, {metadata_length} bytes of metadata and {body_length} "
            f"of body before {len(payload) - header_length} bytes"
        )
    envelope_crc, fixed_length, timestamp_unit = 0, FIXED.size, MILLISECONDS
    if version != ARROW_VERSION:
        envelope_crc, fixed_length, timestamp_unit = _parse_added(header)
    columns = _parse_directory(header, fixed_length, column_count, entry_length, body_length)
    return ArrowHeader(
        schema_id=schema_id,
        row_count=row_count,
        key_column=key_column,
        timestamp_column=timestamp_column,
        metadata_length=metadata_length,
        body_length=body_length,
        metadata_crc=metadata_crc,
        columns=columns,
        offset_deltas=_parse_deltas(header, deltas_position, row_count)
        if flags & OFFSET_DELTAS_FLAG
        else None,
        header_length=header_length,
        version=version,
        envelope_crc=envelope_crc,
        timestamp_unit=timestamp_unit,
        bounds=_parse_bounds(header, columns),
    )


def schema_version_of(batch: Bytes, header: BatchHeader) -> int:
    """The version of the topic's columns in a batch whose CRC was compared; 0 without columns of a topic."""
    position = ENVELOPE_BYTES + _SCHEMA_ID_POSITION
    has_room = len(batch) >= position + _SCHEMA_ID.size
    if not (header.is_arrow and has_room and batch[VERSION_POSITION] == TYPED_ARROW_VERSION):
        return 0
    return int(_SCHEMA_ID.unpack_from(batch, position)[0])


def _parse_added(header: memoryview) -> tuple[int, int, int]:
    """What version 2 adds to the fixed part."""
    if len(header) < FIXED_BYTES_MIN:
        raise CorruptBatch(f"an arrow header of {len(header)} bytes is shorter than its fixed part")
    envelope_crc, fixed_length, timestamp_unit = ADDED.unpack_from(header, FIXED.size)
    is_known = timestamp_unit in (MILLISECONDS, MICROSECONDS)
    if not FIXED_BYTES_MIN <= fixed_length <= len(header) or not is_known:
        raise CorruptBatch(
            f"an arrow header with a fixed part of {fixed_length} bytes and times of unit {timestamp_unit}"
        )
    return envelope_crc, fixed_length, timestamp_unit


def check_message(message: Bytes, header: ArrowHeader) -> None:
    """CorruptBatch unless the metadata and each column's bytes match the CRCs in the header."""
    view = memoryview(message)
    if crc32c(view[: header.metadata_length]) != header.metadata_crc:
        raise CorruptBatch(f"the CRC {header.metadata_crc:#010x} of the Arrow metadata does not match")
    check_regions(view[header.metadata_length :], header.columns)


def check_regions(body: Bytes, columns: Sequence[ColumnEntry]) -> None:
    """DamagedColumn unless the bytes of each of these columns match the CRC in the directory."""
    view = memoryview(body)
    for column in columns:
        if crc32c(view[column.offset : column.offset + column.length]) != column.crc:
            raise DamagedColumn(column)


def _parse_directory(
    header: memoryview, position: int, column_count: int, entry_length: int, body_length: int
) -> tuple[ColumnEntry, ...]:
    if entry_length < ENTRY.size or position + column_count * entry_length > len(header):
        raise CorruptBatch(f"{column_count} columns of {entry_length} bytes in a header of {len(header)}")
    columns: list[ColumnEntry] = []
    end = 0
    for nth in range(column_count):
        column = ColumnEntry(*ENTRY.unpack_from(header, position + nth * entry_length))
        if column.offset != end or column.offset + column.length > body_length:
            raise CorruptBatch(
                f"column {column.column_id} has {column.length} bytes at {column.offset}; it must begin at "
                f"{end} and end within {body_length}"
            )
        end = column.offset + column.length
        columns.append(column)
    if end != body_length:
        raise CorruptBatch(f"the columns cover {end} of {body_length} bytes")
    return tuple(columns)


def _parse_bounds(header: memoryview, columns: Sequence[ColumnEntry]) -> dict[int, Bounds]:
    found: dict[int, Bounds] = {}
    for entry in columns:
        if entry.min_position or entry.max_position:
            found[entry.column_id] = Bounds(
                _parse_bound(header, entry.min_position, entry.min_length),
                _parse_bound(header, entry.max_position, entry.max_length),
            )
    return found


def _parse_bound(header: memoryview, position: int, length: int) -> bytes | None:
    if not position:
        return None
    if position < FIXED.size or position + length > len(header):
        raise CorruptBatch(f"a bound of {length} bytes at {position} in a header of {len(header)} bytes")
    return bytes(header[position : position + length])


def _parse_deltas(header: memoryview, position: int, row_count: int) -> Int64s:
    if position < FIXED.size or position + row_count * DELTA.itemsize > len(header):
        raise CorruptBatch(f"{row_count} offset deltas at {position} in a header of {len(header)} bytes")
    return np.frombuffer(header, DELTA, row_count, position).astype(np.int64)
