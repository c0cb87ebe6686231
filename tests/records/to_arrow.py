"""Arrow batches for tests, made of batches of Kafka records."""

import numpy as np
import pyarrow as pa

from sparklog.records.arrow.arrow_payload import payload_pieces
from sparklog.records.bridge import values_of
from sparklog.records.envelope import (
    ARROW_BIT,
    COMPRESSION_MASK,
    BatchHeader,
    Bytes,
    Compression,
    build_envelope,
    parse_header,
)
from sparklog.records.payload import payload_of
from sparklog.records.row_columns import Int64s, RowColumns


def records_to_arrow(batch: Bytes, *, compression: Compression = Compression.NONE) -> bytes:
    """The same batch with an *arrow* payload."""
    header = parse_header(batch)
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
    return build_envelope(
        pieces,
        attributes=attributes,
        record_count=header.record_count,
        last_offset_delta=header.last_offset_delta,
        base_timestamp_ms=header.base_timestamp_ms,
        max_timestamp_ms=header.max_timestamp_ms,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )


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
