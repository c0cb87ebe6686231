"""The *arrow* payload: rows as Spark wrote them, as an Arrow IPC record-batch message.

The envelope is followed by our header (``header``) and then by the Arrow message, whose buffers may be
compressed one by one. The codec bits of the envelope's attributes are 0. The batch does not contain the
schema; schema id 0 means untyped topics (``columns``). Columns without information are absent: the
key column if no row has a key, the timestamp column if all rows have the base timestamp.

Bytes from the network are checked before pyarrow reads them: header CRC, directory, the message's layout, and
the claimed sizes of compressed buffers. Afterwards ``validate(full=True)`` reads every offset and all text,
for 17 µs per 10,000 rows; without it a bad offset would cause a read outside the buffer.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.columns import (
    HEADERS_COLUMN,
    KEY_COLUMN,
    TIMESTAMP_COLUMN,
    UNTYPED,
    VALUE_COLUMN,
    WIRE_TIMESTAMP,
    ArrowSchema,
)
from sparklog.records.arrow.directory import check_layout, directory_of
from sparklog.records.arrow.header import NO_COLUMN, ArrowHeader, check_message, parse_arrow_header
from sparklog.records.arrow.layout import PREFIX, parse_layout, uncompressed_bytes
from sparklog.records.bridge import nulls_of, numbers, values_of
from sparklog.records.codecs import DECOMPRESSED_BYTES_MAX
from sparklog.records.envelope import (
    ARROW_BIT,
    COMPRESSION_MASK,
    ENVELOPE_BYTES,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Bytes,
    Compression,
    build_envelope,
)
from sparklog.records.row_columns import (
    CREATE_TIME,
    HEADERS_TYPE,
    LOG_APPEND_TIME,
    Int64s,
    RowColumns,
    least_of,
    normalise,
    row_batch,
)

_IPC_COMPRESSION: Final = {Compression.NONE: None, Compression.LZ4: "lz4", Compression.ZSTD: "zstd"}


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """The columns of an arrow batch; None for absent columns."""

    key: Any | None
    value: Any
    timestamps_ms: Int64s
    headers: Any | None
    offset_deltas: Int64s


class ArrowPayload:
    """Implements ``payload.Payload``."""

    def validate(self, batch: Bytes, header: BatchHeader) -> None:
        read_rows(batch, header)

    def to_columns(self, batch: Bytes, header: BatchHeader) -> pa.RecordBatch:
        rows = read_rows(batch, header)
        count = header.record_count
        timestamp_type = LOG_APPEND_TIME if header.is_log_append_time else CREATE_TIME
        return row_batch(
            key=pa.nulls(count, pa.binary()) if rows.key is None else rows.key,
            value=rows.value,
            timestamps_ms=rows.timestamps_ms,
            headers=pa.nulls(count, HEADERS_TYPE) if rows.headers is None else rows.headers,
            offsets=header.base_offset + rows.offset_deltas,
            timestamp_types=np.full(count, timestamp_type, np.int32),
        )

    def keyless_rows(self, batch: Bytes, header: BatchHeader, rows_max: int) -> tuple[int, list[int]]:
        key = read_rows(batch, header).key
        if key is None:
            return header.record_count, list(range(min(rows_max, header.record_count)))
        return key.null_count, nulls_of(key).nonzero()[0][:rows_max].tolist()

    def least_timestamp_ms(self, batch: Bytes, header: BatchHeader) -> int | None:
        return least_of(read_rows(batch, header).timestamps_ms)

    def from_columns(
        self,
        columns: pa.RecordBatch | pa.Table,
        *,
        now_ms: int,
        compression: Compression = Compression.NONE,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
    ) -> bytes:
        rows = normalise(columns, now_ms)
        stamps = rows.timestamps_ms
        base_timestamp_ms = now_ms if stamps is None else int(stamps[0])
        return build_envelope(
            payload_pieces(rows, base_timestamp_ms, compression),
            attributes=ARROW_BIT | (TRANSACTIONAL_BIT if is_transactional else 0),
            record_count=rows.row_count,
            last_offset_delta=rows.row_count - 1,
            base_timestamp_ms=base_timestamp_ms,
            max_timestamp_ms=now_ms if stamps is None else int(stamps.max()),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )


def payload_pieces(
    rows: RowColumns,
    base_timestamp_ms: int,
    compression: Compression,
    offset_deltas: Int64s | None = None,
    schema: ArrowSchema = UNTYPED,
) -> tuple[bytes, memoryview]:
    """Our header and the Arrow message, separate, so that the batch is built with one copy."""
    columns = {
        KEY_COLUMN: rows.key,
        VALUE_COLUMN: rows.value,
        TIMESTAMP_COLUMN: _timestamp_column(rows.timestamps_ms, base_timestamp_ms),
        HEADERS_COLUMN: rows.headers,
    }
    present = {number: column for number, column in columns.items() if column is not None}
    batch = pa.RecordBatch.from_arrays(list(present.values()), schema=schema.of_columns(list(present)))
    message = serialise(batch, compression)
    layout = parse_layout(message)
    header = ArrowHeader(
        schema_id=schema.schema_id,
        row_count=rows.row_count,
        key_column=KEY_COLUMN if KEY_COLUMN in present else NO_COLUMN,
        timestamp_column=TIMESTAMP_COLUMN if TIMESTAMP_COLUMN in present else NO_COLUMN,
        metadata_length=layout.metadata_length,
        body_length=layout.body_length,
        metadata_crc=crc32c(message[: layout.metadata_length]),
        columns=directory_of(schema, list(present), layout, message[layout.metadata_length :]),
        offset_deltas=offset_deltas,
    )
    return header.pack(), message[: layout.size_bytes]


def _timestamp_column(timestamps_ms: Int64s | None, base_timestamp_ms: int) -> Any | None:
    """The timestamp column; None if all rows have the envelope's base timestamp."""
    if timestamps_ms is None or np.all(timestamps_ms == base_timestamp_ms):
        return None
    return numbers(timestamps_ms).view(WIRE_TIMESTAMP)


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


def read_rows(batch: Bytes, header: BatchHeader, schema: ArrowSchema = UNTYPED) -> ArrowRows:
    """The columns of an arrow batch, fully checked; CorruptBatch if anything is wrong."""
    if len(batch) < header.size_bytes:
        raise CorruptBatch(f"{len(batch)} bytes are less than the batch's {header.size_bytes}")
    if header.attributes & COMPRESSION_MASK or header.is_control:
        raise CorruptBatch(f"an arrow batch cannot have attributes {header.attributes:#06x}")
    payload = memoryview(batch)[ENVELOPE_BYTES : header.size_bytes]
    ours = parse_arrow_header(payload)
    columns = _read_columns(payload, ours, header, schema)
    timestamp = columns.get(TIMESTAMP_COLUMN)
    return ArrowRows(
        key=columns.get(KEY_COLUMN),
        value=columns[VALUE_COLUMN],
        timestamps_ms=_timestamps_ms(timestamp, header),
        headers=columns.get(HEADERS_COLUMN),
        offset_deltas=_offset_deltas(ours, header),
    )


def _read_columns(
    payload: memoryview, ours: ArrowHeader, header: BatchHeader, schema: ArrowSchema
) -> dict[int, Any]:
    present = [column.column_id for column in ours.columns]
    schema.check(ours.schema_id, present)
    message = payload[ours.header_length :]
    check_message(message, ours)
    layout = parse_layout(message)
    check_layout(schema, layout, ours, header)
    if sum(uncompressed_bytes(message[layout.metadata_length :], layout)) > DECOMPRESSED_BYTES_MAX:
        raise CorruptBatch(f"an arrow payload decompresses to more than {DECOMPRESSED_BYTES_MAX} bytes")
    try:
        rows = pa.ipc.read_record_batch(_aligned(message), schema.of_columns(present))
        rows.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptBatch(f"the Arrow message cannot be read: {error}") from None
    columns = dict(zip(present, rows.columns, strict=True))
    _check_headers(columns.get(HEADERS_COLUMN))
    return columns


def _aligned(message: memoryview) -> pa.Buffer:
    """The message at an address that Arrow can use; copied only if it is not aligned to 8 bytes."""
    buffer = pa.py_buffer(message)
    return buffer if buffer.address % 8 == 0 else pa.py_buffer(bytes(message))


def _check_headers(headers: Any | None) -> None:
    if headers is not None:
        items = headers.flatten()
        if items.null_count or items.field("key").null_count:
            raise CorruptBatch("an arrow batch has a null header or a header without a key")


def _timestamps_ms(timestamp: Any | None, header: BatchHeader) -> Int64s:
    if header.is_log_append_time:
        return np.full(header.record_count, header.max_timestamp_ms, np.int64)
    if timestamp is None:
        return np.full(header.record_count, header.base_timestamp_ms, np.int64)
    if timestamp.null_count:
        raise CorruptBatch(f"{timestamp.null_count} rows of an arrow batch have no timestamp")
    values: Int64s = values_of(timestamp)
    return values


def _offset_deltas(ours: ArrowHeader, header: BatchHeader) -> Int64s:
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
