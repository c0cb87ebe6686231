"""From one payload kind to the other, where a reader knows only one.

The broker turns *arrow* into *records* when a plain Kafka client fetches. Such a client must see the same
records at the same offsets as everybody else, and the same producer id, epoch, sequence and transactional
bit, or read-committed consumers would go wrong; so of the envelope only the payload's own bits change.
"""

import numpy as np
import pyarrow as pa

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow import payload_pieces, read_rows
from sparklog.records.bridge import values_of
from sparklog.records.columns import Int64s, RowColumns
from sparklog.records.envelope import (
    ARROW_BIT,
    COMPRESSION_MASK,
    DELETE_HORIZON_BIT,
    BatchHeader,
    Bytes,
    Compression,
    build_envelope,
    crc_matches,
    parse_header,
)
from sparklog.records.kafka_encode import encode, header_lists
from sparklog.records.payload import payload_of


def arrow_to_records(batch: Bytes) -> bytes:
    """The same batch with a *records* payload, uncompressed; CorruptBatch if it is no intact arrow batch."""
    header = parse_header(batch)
    if not header.is_arrow:
        raise CorruptBatch(f"the batch at offset {header.base_offset} has no arrow payload to transcode")
    if not crc_matches(batch, 0, header):  # it gets another, which would vouch for whatever has rotted
        raise CorruptBatch(f"the batch at offset {header.base_offset} is not what its CRC says")
    rows = read_rows(batch, header)
    count = header.record_count
    payload = encode(
        rows.offset_deltas,
        rows.timestamps_ms,
        [None] * count if rows.key is None else rows.key.to_pylist(),
        rows.value.to_pylist(),
        header_lists(rows.headers, count),
    )
    base_timestamp_ms = int(rows.timestamps_ms[0]) if count else header.base_timestamp_ms
    # A delete horizon is the base timestamp of what is stored, and nothing to whom this is sent.
    attributes = header.attributes & ~(ARROW_BIT | DELETE_HORIZON_BIT)
    return _rebuilt(header, (payload,), attributes, base_timestamp_ms)


def records_to_arrow(batch: Bytes, *, compression: Compression = Compression.NONE) -> bytes:
    """The same batch with an *arrow* payload. Control batches have no rows and stay as they are."""
    header = parse_header(batch)
    if header.is_arrow or header.is_control:
        raise CorruptBatch(f"the batch at offset {header.base_offset} has no records to transcode")
    columns = payload_of(header).to_columns(batch, header)
    offset_deltas: Int64s = values_of(columns.column("offset")) - header.base_offset
    is_dense = np.array_equal(offset_deltas, np.arange(len(offset_deltas)))
    pieces = payload_pieces(
        _row_columns(columns, header),
        header.base_timestamp_ms,
        compression,
        None if is_dense else offset_deltas,
    )
    attributes = (header.attributes & ~COMPRESSION_MASK) | ARROW_BIT
    return _rebuilt(header, pieces, attributes, header.base_timestamp_ms)


def _row_columns(columns: pa.RecordBatch, header: BatchHeader) -> RowColumns:
    key, headers = columns.column("key"), columns.column("headers")
    timestamps_ms: Int64s = values_of(columns.column("timestamp")) // 1_000
    return RowColumns(
        row_count=columns.num_rows,
        key=None if key.null_count == len(key) else key,
        value=columns.column("value"),
        timestamps_ms=None if header.is_log_append_time else timestamps_ms,
        headers=None if headers.null_count == len(headers) else headers,
    )


def _rebuilt(
    header: BatchHeader, pieces: tuple[Bytes, ...], attributes: int, base_timestamp_ms: int
) -> bytes:
    return build_envelope(
        pieces,
        attributes=attributes,
        record_count=header.record_count,
        last_offset_delta=header.last_offset_delta,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=header.max_timestamp_ms,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
