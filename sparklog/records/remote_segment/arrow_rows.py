"""The rows of batches as messages of an ``.arrow`` object.

An arrow batch's body is taken as it is. The buffers that the batch lacks follow it: the offsets, the
timestamps where all rows have the same one, and zeros for columns that are absent; the metadata before it is
new. Rows of *records* batches are written anew, compressed with zstd, as their own bytes are in ``.rest``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sparklog.records.arrow.arrow_message import serialise
from sparklog.records.arrow.arrow_payload import read_rows
from sparklog.records.arrow.columns import (
    HEADERS_COLUMN,
    KEY_COLUMN,
    TIMESTAMP_COLUMN,
    UNTYPED,
    VALUE_COLUMN,
    WIRE_TIMESTAMP,
)
from sparklog.records.arrow.header import parse_arrow_header
from sparklog.records.arrow.layout import IpcLayout, Node, Region, parse_layout
from sparklog.records.bridge import numbers, values_of
from sparklog.records.envelope import ENVELOPE_BYTES, BatchHeader, Compression
from sparklog.records.remote_segment.block_statistics import KEY_BYTES_MAX, BlockStatistics
from sparklog.records.remote_segment.ipc_file import padding, record_batch_metadata
from sparklog.records.row_columns import Int64s

OFFSET_COLUMN: Final = 0
FILE_COLUMNS: Final = (OFFSET_COLUMN, TIMESTAMP_COLUMN, KEY_COLUMN, VALUE_COLUMN, HEADERS_COLUMN)
FILE_SCHEMA: Final = pa.schema([pa.field("offset", pa.int64()), *UNTYPED.of_columns(FILE_COLUMNS[1:])])
_EMPTY: Final = Region(0, 0)
_UNCOMPRESSED: Final = -1
_LENGTH: Final = Struct("<q")
_CODEC_NAMES: Final = ("lz4", "zstd")


@dataclass(frozen=True, slots=True)
class RowsMessage:
    """A record-batch message, and what the footer says of it.

    ``batch_body``: position in the message and length of an arrow batch's own body; None for rows of records.
    """

    metadata: bytes
    body: Sequence[bytes | memoryview]
    statistics: BlockStatistics
    batch_body: tuple[int, int] | None

    @property
    def body_length(self) -> int:
        return sum(map(len, self.body))


@dataclass(slots=True)
class _Tail:
    """The buffers after a batch's body."""

    codec: int | None
    length: int
    """Bytes of the body so far."""
    pieces: list[bytes] = field(default_factory=list)

    def add(self, data: bytes) -> Region:
        if self.codec is not None:
            packed = pa.compress(data, codec=_CODEC_NAMES[self.codec], asbytes=True)
            if len(packed) < len(data):
                data = _LENGTH.pack(len(data)) + packed
            else:
                data = _LENGTH.pack(_UNCOMPRESSED) + data
        region = Region(self.length, len(data))
        fill = padding(len(data))
        self.pieces += [data, fill]
        self.length += len(data) + len(fill)
        return region


def message_of_arrow_batch(batch: memoryview, header: BatchHeader) -> RowsMessage:
    """The rows of a whole arrow batch, whose body is not copied; CorruptBatch if anything in it is wrong."""
    rows = read_rows(batch, header)
    payload = batch[ENVELOPE_BYTES : header.size_bytes]
    ours = parse_arrow_header(payload)
    message = payload[ours.header_length :]
    layout = parse_layout(message)
    body = message[layout.metadata_length : layout.size_bytes]
    fill = padding(len(body))
    tail = _Tail(layout.codec, len(body) + len(fill))
    offsets = header.base_offset + rows.offset_deltas
    columns = {
        entry.column_id: (
            list(layout.nodes[entry.first_node :][: entry.node_count]),
            list(layout.buffers[entry.first_buffer :][: entry.buffer_count]),
        )
        for entry in ours.columns
    }
    columns[OFFSET_COLUMN] = _number_column(tail, offsets)
    if header.is_log_append_time or TIMESTAMP_COLUMN not in columns:
        columns[TIMESTAMP_COLUMN] = _number_column(tail, rows.timestamps_ms)
    _add_absent(columns, tail, layout)
    metadata = record_batch_metadata(
        layout.row_count,
        [node for number in FILE_COLUMNS for node in columns[number][0]],
        [buffer for number in FILE_COLUMNS for buffer in columns[number][1]],
        codec=layout.codec,
        body_length=tail.length,
    )
    return RowsMessage(
        metadata,
        [body, fill, *tail.pieces],
        _statistics_of(offsets, rows.timestamps_ms, rows.key),
        (len(metadata), len(body)),
    )


def _number_column(tail: _Tail, values: Int64s) -> tuple[list[Node], list[Region]]:
    return [Node(len(values), 0)], [_EMPTY, tail.add(values.astype("<i8").tobytes())]


def _add_absent(columns: dict[int, tuple[list[Node], list[Region]]], tail: _Tail, layout: IpcLayout) -> None:
    """Columns of nulls for key and headers where the batch has none, all upon the same zeros."""
    missing = [number for number in (KEY_COLUMN, HEADERS_COLUMN) if number not in columns]
    if not missing:
        return
    count = layout.row_count
    zeros = tail.add(bytes(4 * (count + 1)))
    nulls = Node(count, count)
    if KEY_COLUMN in missing:
        columns[KEY_COLUMN] = [nulls], [zeros, zeros, _EMPTY]
    if HEADERS_COLUMN in missing:
        inner = [_EMPTY, zeros, _EMPTY]
        columns[HEADERS_COLUMN] = [nulls, *[Node(0, 0)] * 3], [zeros, zeros, _EMPTY, *inner, *inner]


def message_of_rows(rows: Sequence[pa.RecordBatch]) -> RowsMessage:
    """Rows of *records* batches, in ROW_SCHEMA, as one message."""
    table = pa.Table.from_batches(rows).combine_chunks()
    (batch,) = table.to_batches()
    timestamps_ms: Int64s = values_of(batch.column("timestamp")) // 1_000
    offsets: Int64s = values_of(batch.column("offset"))
    columns: list[Any] = [
        numbers(offsets),
        numbers(timestamps_ms).view(WIRE_TIMESTAMP),
        batch.column("key"),
        batch.column("value"),
        batch.column("headers"),
    ]
    message = serialise(pa.RecordBatch.from_arrays(columns, schema=FILE_SCHEMA), Compression.ZSTD)
    layout = parse_layout(message)
    return RowsMessage(
        bytes(message[: layout.metadata_length]),
        [message[layout.metadata_length : layout.size_bytes]],
        _statistics_of(offsets, timestamps_ms, batch.column("key")),
        None,
    )


def _statistics_of(offsets: Int64s, timestamps_ms: Int64s, key: Any | None) -> BlockStatistics:
    bounds = (None, None) if key is None else _key_bounds(key)
    return BlockStatistics(
        row_count=len(offsets),
        first_offset=int(offsets[0]),
        last_offset=int(offsets[-1]),
        least_timestamp=int(timestamps_ms.min()),
        greatest_timestamp=int(timestamps_ms.max()),
        null_keys=len(offsets) if key is None else key.null_count,
        least_key=bounds[0],
        greatest_key=bounds[1],
    )


def _key_bounds(key: Any) -> tuple[str | None, str | None]:
    least_and_greatest = pc.min_max(key)
    least, greatest = (least_and_greatest[name].as_py() for name in ("min", "max"))
    if least is None:
        return None, None
    return least[:KEY_BYTES_MAX].hex(), None if len(greatest) > KEY_BYTES_MAX else greatest.hex()


def schema_message() -> bytes:
    """The message at the start of every file."""
    message = bytes(FILE_SCHEMA.serialize())
    return message + padding(len(message))
