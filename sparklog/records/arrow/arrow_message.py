"""The columns of an *arrow* payload as a header and an Arrow message, whatever their schema.

Bytes from the network are checked before pyarrow reads them: header CRC, directory, the message's layout, and
the claimed sizes of compressed buffers. Afterwards ``validate(full=True)`` reads every offset and all text,
for 17 µs per 10,000 rows; without it a bad offset would cause a read outside the buffer.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.column_bounds import bounds_of
from sparklog.records.arrow.columns import ArrowSchema
from sparklog.records.arrow.directory import check_layout, directory_of
from sparklog.records.arrow.header import (
    MILLISECONDS,
    NO_COLUMN,
    ArrowHeader,
    check_message,
    parse_arrow_header,
)
from sparklog.records.arrow.layout import PREFIX, parse_layout, uncompressed_bytes
from sparklog.records.codecs import DECOMPRESSED_BYTES_MAX
from sparklog.records.envelope import COMPRESSION_MASK, ENVELOPE_BYTES, BatchHeader, Bytes, Compression
from sparklog.records.payload_kinds import ARROW_VERSION
from sparklog.records.row_columns import Int64s

_IPC_COMPRESSION: Final = {Compression.NONE: None, Compression.LZ4: "lz4", Compression.ZSTD: "zstd"}


def message_pieces(
    schema: ArrowSchema,
    columns: Mapping[int, Any],
    row_count: int,
    compression: Compression,
    *,
    key_column: int = NO_COLUMN,
    timestamp_column: int = NO_COLUMN,
    offset_deltas: Int64s | None = None,
    version: int = ARROW_VERSION,
    timestamp_unit: int = MILLISECONDS,
    envelope_crc: int = 0,
    with_bounds: bool = False,
) -> tuple[bytes, memoryview]:
    """Our header and the Arrow message, separate, so that the batch is built with one copy."""
    numbers = list(columns)
    batch = pa.RecordBatch.from_arrays(list(columns.values()), schema=schema.of_columns(numbers))
    message = serialise(batch, compression)
    layout = parse_layout(message)
    header = ArrowHeader(
        schema_id=schema.schema_id,
        row_count=row_count,
        key_column=key_column,
        timestamp_column=timestamp_column,
        metadata_length=layout.metadata_length,
        body_length=layout.body_length,
        metadata_crc=crc32c(message[: layout.metadata_length]),
        columns=directory_of(schema, numbers, layout, message[layout.metadata_length :]),
        offset_deltas=offset_deltas,
        version=version,
        envelope_crc=envelope_crc,
        timestamp_unit=timestamp_unit,
        bounds=bounds_of(columns, layout.size_bytes) if with_bounds else {},
    )
    return header.pack(), message[: layout.size_bytes]


def serialise(batch: pa.RecordBatch, compression: Compression) -> memoryview:
    """The record-batch message. Arrow writes it with one copy, and normalises slices and their bitmaps."""
    if compression is Compression.NONE:
        return memoryview(batch.serialize())
    if compression not in _IPC_COMPRESSION:
        raise ValueError(f"arrow payloads are compressed by lz4 or zstd, not {compression.name.lower()}")
    options = pa.ipc.IpcWriteOptions(compression=_IPC_COMPRESSION[compression], use_threads=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    stream = memoryview(sink.getvalue())
    schema_message_length = PREFIX.size + PREFIX.unpack_from(stream)[1]
    return stream[schema_message_length:]


def payload_of_batch(batch: Bytes, header: BatchHeader) -> tuple[memoryview, ArrowHeader]:
    """The payload and its header; CorruptBatch if they are malformed, or damaged. Of a batch that is cut
    (``cut_batch``) not all of the message is there.
    """
    if len(batch) < header.size_bytes:
        raise CorruptBatch(f"{len(batch)} bytes are less than the batch's {header.size_bytes}")
    if header.attributes & COMPRESSION_MASK or header.is_control:
        raise CorruptBatch(f"an arrow batch cannot have attributes {header.attributes:#06x}")
    payload = memoryview(batch)[ENVELOPE_BYTES : header.size_bytes]
    return payload, parse_arrow_header(payload, is_partial=header.is_cut)


def read_message(
    message: Bytes, ours: ArrowHeader, header: BatchHeader, schema: ArrowSchema
) -> dict[int, Any]:
    """The columns that are present, by their ids, fully checked; CorruptBatch if anything is wrong."""
    present = [column.column_id for column in ours.columns]
    schema.check(ours.schema_id, present)
    check_message(message, ours)
    layout = parse_layout(message)
    check_layout(schema, layout, ours, header)
    body = memoryview(message)[layout.metadata_length :]
    if sum(uncompressed_bytes(body, layout)) > DECOMPRESSED_BYTES_MAX:
        raise CorruptBatch(f"an arrow payload decompresses to more than {DECOMPRESSED_BYTES_MAX} bytes")
    try:
        rows = pa.ipc.read_record_batch(_aligned(message), schema.of_columns(present))
        rows.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptBatch(f"the Arrow message cannot be read: {error}") from None
    return dict(zip(present, rows.columns, strict=True))


def _aligned(message: Bytes) -> pa.Buffer:
    """The message at an address that Arrow can use; copied only if it is not aligned to 8 bytes."""
    buffer = pa.py_buffer(message)
    return buffer if buffer.address % 8 == 0 else pa.py_buffer(bytes(message))


def offset_deltas_of(ours: ArrowHeader, header: BatchHeader) -> Int64s:
    """Each row's offset − base offset; CorruptBatch unless they grow within the batch."""
    deltas = ours.offset_deltas
    if deltas is None:
        deltas = np.arange(ours.row_count, dtype=np.int64)
    if len(deltas) and (
        deltas[0] < 0 or deltas[-1] > header.last_offset_delta or np.any(np.diff(deltas) <= 0)
    ):
        raise CorruptBatch(
            f"offset deltas from {deltas[0]} to {deltas[-1]} do not grow within 0 to "
            f"{header.last_offset_delta}"
        )
    return deltas
