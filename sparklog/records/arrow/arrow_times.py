"""Offsets and times of an arrow batch's rows, read from the header and one region, without the schema.

Times are in the header's unit: milliseconds of untyped rows, microseconds of typed ones, of which
milliseconds are made by rounding down. A row without a time has the batch's base timestamp. Log-append time
goes over all of them.
"""

from typing import Final

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.arrow_message import offset_deltas_of, payload_of_batch
from sparklog.records.arrow.header import MICROSECONDS, ArrowHeader, ColumnEntry, check_regions
from sparklog.records.arrow.layout import IpcLayout, Region, parse_layout, uncompressed_bytes
from sparklog.records.bridge import Bools
from sparklog.records.codecs import DECOMPRESSED_BYTES_MAX
from sparklog.records.envelope import BatchHeader, Bytes
from sparklog.records.row_columns import Int64s
from sparklog.records.row_times import Times

_CODECS: Final = {0: "lz4", 1: "zstd"}
_LENGTH_BYTES: Final = 8
_STORED: Final = -1
_MICROSECONDS_PER_MS: Final = 1_000
_I64: Final = np.dtype("<i8")


def times_of(batch: Bytes, header: BatchHeader) -> Times:
    """CorruptBatch if what is read of the batch is malformed, or damaged."""
    payload, ours = payload_of_batch(batch, header)
    if ours.row_count != header.record_count:
        raise CorruptBatch(
            f"{header.record_count} records in the envelope, {ours.row_count} in the arrow header"
        )
    offsets = header.base_offset + offset_deltas_of(ours, header)
    count = ours.row_count
    if header.is_log_append_time:
        return Times(offsets, np.full(count, header.max_timestamp_ms, np.int64))
    entry = next((one for one in ours.columns if one.column_id == ours.timestamp_column), None)
    if entry is None:
        return Times(offsets, np.full(count, header.base_timestamp_ms, np.int64))
    values, nulls = _values(payload[ours.header_length :], ours, entry)
    return Times(offsets, in_milliseconds(values, nulls, header.base_timestamp_ms, ours.timestamp_unit))


def in_milliseconds(values: Int64s, nulls: Bools | None, base_timestamp_ms: int, unit: int) -> Int64s:
    """Times of records: nulls are the base timestamp; of typed rows what is before 1970 counts as 0."""
    if unit == MICROSECONDS:
        values = np.maximum(values // _MICROSECONDS_PER_MS, 0)
    return values if nulls is None else np.where(nulls, base_timestamp_ms, values)


def _values(message: memoryview, ours: ArrowHeader, entry: ColumnEntry) -> tuple[Int64s, Bools | None]:
    """The column's numbers, and where it is null."""
    if crc32c(message[: ours.metadata_length]) != ours.metadata_crc:
        raise CorruptBatch(f"the CRC {ours.metadata_crc:#010x} of the Arrow metadata does not match")
    body = message[ours.metadata_length :]
    check_regions(body, [entry])
    layout = parse_layout(message)
    regions = layout.buffers[entry.first_buffer : entry.first_buffer + entry.buffer_count]
    if entry.buffer_count != 2 or len(regions) != entry.buffer_count:
        raise CorruptBatch(
            f"the times are in column {entry.column_id} of {entry.buffer_count} buffers, not 2"
        )
    for offset, length in regions:
        if length and not entry.offset <= offset <= offset + length <= entry.offset + entry.length:
            raise CorruptBatch(f"a buffer of column {entry.column_id} at {offset} is outside its region")
    count = ours.row_count
    validity, data = (_uncompressed(body, layout, region) for region in regions)
    if len(data) < count * _I64.itemsize or (len(validity) and 8 * len(validity) < count):
        raise CorruptBatch(f"{len(data)} bytes of times for {count} rows")
    values: Int64s = np.frombuffer(data, _I64, count)
    if not len(validity):
        return values, None
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), count=count, bitorder="little")
    return values, bits == 0


def _uncompressed(body: memoryview, layout: IpcLayout, region: Region) -> Bytes:
    stored = body[region.offset : region.offset + region.length]
    if layout.codec is None or not len(stored):
        return stored
    (length,) = uncompressed_bytes(body, IpcLayout(0, 0, 0, (), (region,), layout.codec))
    if length > DECOMPRESSED_BYTES_MAX:
        raise CorruptBatch(f"a buffer of times claims {length} bytes")
    if int.from_bytes(stored[:_LENGTH_BYTES], "little", signed=True) == _STORED:
        return stored[_LENGTH_BYTES:]
    try:
        return memoryview(pa.decompress(stored[_LENGTH_BYTES:], length, _CODECS[layout.codec]))
    except (pa.ArrowException, OSError) as error:
        raise CorruptBatch(f"a buffer of times cannot be decompressed: {error}") from None
