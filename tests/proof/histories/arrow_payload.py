"""Decodes a batch's *arrow* payload, version 1, from the published format (docs/format/batch.md).

What version 2 has alike is read here, too (``typed.payload``).

The Arrow message itself is read by Arrow's own library; header, directory and offset deltas are read here.
What they say is checked, although the batch's own CRC has vouched for their bytes: a broker that writes a
payload anew, as compaction does, can be wrong with a right CRC. Not checked is where in the body one column's
region ends and the next one's begins, and what buffers take when they are decompressed: Arrow tells neither.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa

from histories.soundness import DamagedBatchError, crc32c

FIXED: Final = struct.Struct("<BBHIIIIHHiiIIII")
ENTRY: Final = struct.Struct("<iIIIIHHHH")
"""What is used of a column's entry: id; the region's offset, length and CRC; nulls; first node, nodes; first
buffer, buffers.
"""
ENTRY_BYTES_MIN: Final = 48
KIND_AND_VERSION: Final = (1, 1)
HAS_DELTAS: Final = 1
UNTYPED: Final = 0
ABSENT: Final = -1
CRC_ENDS: Final = 12
"""Of the fixed part; the four bytes before it hold the header's CRC."""

KEY, VALUE, TIMESTAMP, HEADERS = 1, 2, 3, 4
COLUMNS: Final[dict[int, Any]] = {
    KEY: pa.field("key", pa.binary()),
    VALUE: pa.field("value", pa.binary()),
    TIMESTAMP: pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
    HEADERS: pa.field(
        "headers",
        pa.list_(
            pa.field(
                "element",
                pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())]),
                nullable=False,
            )
        ),
    ),
}

NODES_AND_BUFFERS: Final = {KEY: (1, 3), VALUE: (1, 3), TIMESTAMP: (1, 2), HEADERS: (4, 9)}
"""Of each column's type in an Arrow message: a struct of two in a list has a node and buffers for each."""


def rows_of(
    payload: bytes, base_offset: int, count: int, last_delta: int, id_header: str
) -> Iterator[tuple[int, str]]:
    """Offset and value of each row; of one without a value the header ``id_header``."""
    try:
        yield from _rows_of(payload, base_offset, count, last_delta, id_header)
    except (pa.ArrowException, OSError) as error:
        raise DamagedBatchError(f"its Arrow message cannot be read: {error}") from error


class Fixed(NamedTuple):
    """The header's fixed part, as both versions have it."""

    kind: int
    version: int
    flags: int
    header_bytes: int
    crc: int
    schema: int
    rows: int
    columns: int
    entry_bytes: int
    key: int
    timestamp: int
    metadata_bytes: int
    body_bytes: int
    deltas_at: int
    metadata_crc: int


@dataclass(frozen=True, slots=True)
class Payload:
    """What both versions have, its CRCs compared."""

    fixed: Fixed
    header: bytes
    metadata: bytes
    body: bytes
    deltas: Sequence[int]


def opened(payload: bytes, count: int, last_delta: int) -> Payload:
    """The payload of a batch of ``count`` records, in its parts."""
    fixed = Fixed(*FIXED.unpack_from(payload))
    metadata_at = fixed.header_bytes
    body_at = metadata_at + fixed.metadata_bytes
    _check_fixed(fixed, payload, count)
    header, metadata, body = payload[:metadata_at], payload[metadata_at:body_at], payload[body_at:]
    if crc32c(header[: CRC_ENDS - 4] + header[CRC_ENDS:]) != fixed.crc:
        raise DamagedBatchError("the CRC of the arrow header is wrong")
    if crc32c(metadata) != fixed.metadata_crc:
        raise DamagedBatchError("the CRC of the Arrow metadata is wrong")
    deltas: Sequence[int] = range(count)
    if fixed.flags & HAS_DELTAS:
        deltas = struct.unpack_from(f"<{count}i", header, fixed.deltas_at)
    _check_deltas(deltas, last_delta)
    return Payload(fixed, header, metadata, body, deltas)


def _rows_of(
    payload: bytes, base_offset: int, count: int, last_delta: int, id_header: str
) -> Iterator[tuple[int, str]]:
    parts = opened(payload, count, last_delta)
    fixed = parts.fixed
    if (fixed.kind, fixed.version) != KIND_AND_VERSION or fixed.schema != UNTYPED:
        raise DamagedBatchError(f"kind {fixed.kind}, version {fixed.version}, schema {fixed.schema}")
    nulls = nulls_of_columns(parts, FIXED.size, NODES_AND_BUFFERS)
    if VALUE not in nulls:
        raise DamagedBatchError(f"columns {list(nulls)}")
    for named, column in ((fixed.key, KEY), (fixed.timestamp, TIMESTAMP)):
        if named != (column if column in nulls else ABSENT):
            raise DamagedBatchError(f"column {named} is named for {column}, among {list(nulls)}")
    read = read_message(parts, pa.schema([COLUMNS[column] for column in nulls]), nulls)
    yield from zip((base_offset + delta for delta in parts.deltas), _names(read, id_header), strict=True)


def _check_fixed(fixed: Fixed, payload: bytes, count: int) -> None:
    if fixed.flags & ~HAS_DELTAS or bool(fixed.flags & HAS_DELTAS) != bool(fixed.deltas_at):
        raise DamagedBatchError(f"flags {fixed.flags} and offset deltas at {fixed.deltas_at}")
    parts = fixed.header_bytes, fixed.metadata_bytes, fixed.body_bytes
    if fixed.header_bytes < FIXED.size or sum(parts) != len(payload):
        raise DamagedBatchError(f"{parts} bytes in a payload of {len(payload)}")
    if fixed.rows != count:
        raise DamagedBatchError(f"{fixed.rows} rows in a batch of {count} records")


def nulls_of_columns(parts: Payload, at: int, shapes: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """The ids of the columns, and how many nulls each has. Regions follow each other and cover the body.

    ``at``: where the directory begins; ``shapes``: nodes and buffers of each column that may be there.
    """
    fixed, body = parts.fixed, parts.body
    if fixed.entry_bytes < ENTRY_BYTES_MIN:
        raise DamagedBatchError(f"directory entries of {fixed.entry_bytes} bytes")
    found: dict[int, int] = {}
    end = node = buffer = 0
    for number in range(fixed.columns):
        entry = ENTRY.unpack_from(parts.header, at + number * fixed.entry_bytes)
        column, offset, length, crc, nulls, *places = entry
        if offset != end or crc32c(body[offset : offset + length]) != crc:
            raise DamagedBatchError(f"the region of column {column} at {offset} is not what its CRC says")
        nodes, buffers = shapes.get(column, (0, 0))
        if places != [node, nodes, buffer, buffers]:
            raise DamagedBatchError(f"nodes and buffers {places} of column {column}")
        if column in found or column < max(found, default=0):
            raise DamagedBatchError(f"column {column} behind columns {list(found)}")
        found[column] = nulls
        end, node, buffer = offset + length, node + nodes, buffer + buffers
    if end != len(body):
        raise DamagedBatchError(f"columns cover {end} of {len(body)} bytes")
    if not found.keys() <= shapes.keys():
        raise DamagedBatchError(f"columns {list(found)}")
    return found


def _check_deltas(deltas: Sequence[int], last_delta: int) -> None:
    before = -1
    for delta in deltas:
        if not before < delta <= last_delta:
            raise DamagedBatchError(f"offset delta {delta} after {before}")
        before = delta


def read_message(parts: Payload, schema: Any, nulls: Mapping[int, int]) -> Any:
    """The Arrow message as a record batch with the columns of ``nulls``, all of it checked."""
    rows = parts.fixed.rows
    message = pa.ipc.read_message(pa.BufferReader(parts.metadata + parts.body))
    if message.type != "record batch":
        raise DamagedBatchError(f"an Arrow message of type {message.type}")
    read = pa.ipc.read_record_batch(message, schema)
    read.validate(full=True)
    if read.num_rows != rows:
        raise DamagedBatchError(f"{read.num_rows} rows in an Arrow message of {rows}")
    there = [column.null_count for column in read.columns]
    if there != list(nulls.values()):
        raise DamagedBatchError(f"{there} nulls in its columns, and {list(nulls.values())} in their entries")
    return read


def _names(read: Any, id_header: str) -> Iterator[str]:
    values = read.column("value").to_pylist()
    if None not in values:
        yield from (value.decode() for value in values)
        return
    headers = read.column("headers").to_pylist() if "headers" in read.schema.names else [None] * len(values)
    for value, found in zip(values, headers, strict=True):
        named = {header["key"]: header["value"] for header in found or ()}
        yield (named.get(id_header) or b"" if value is None else value).decode()
