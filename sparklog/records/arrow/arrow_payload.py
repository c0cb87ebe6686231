"""The *arrow* payload: rows as Spark wrote them, as an Arrow IPC record-batch message.

The envelope is followed by our header (``header``) and then by the Arrow message, whose buffers may be
compressed one by one. The codec bits of the envelope's attributes are 0. The batch does not contain the
schema; schema id 0 means untyped topics (``columns``). Columns without information are absent: the
key column if no row has a key, the timestamp column if all rows have the base timestamp.

Rows of typed topics are the same kind of payload in another version (``typed_payload``).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.arrow_message import (
    message_pieces,
    offset_deltas_of,
    payload_of_batch,
    read_message,
)
from sparklog.records.arrow.arrow_times import times_of
from sparklog.records.arrow.columns import (
    HEADERS_COLUMN,
    KEY_COLUMN,
    TIMESTAMP_COLUMN,
    UNTYPED,
    VALUE_COLUMN,
    WIRE_TIMESTAMP,
)
from sparklog.records.arrow.header import NO_COLUMN
from sparklog.records.bridge import nulls_of, numbers, values_of
from sparklog.records.envelope import (
    ARROW_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Bytes,
    Compression,
    build_envelope,
)
from sparklog.records.payload_kinds import ARROW_VERSION
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
from sparklog.records.row_times import Times


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

    def times(self, batch: Bytes, header: BatchHeader) -> Times:
        return times_of(batch, header)

    def keyless_rows(self, batch: Bytes, header: BatchHeader, rows_max: int) -> tuple[int, list[int]]:
        key = read_rows(batch, header).key
        if key is None:
            return header.record_count, list(range(min(rows_max, header.record_count)))
        return key.null_count, nulls_of(key).nonzero()[0][:rows_max].tolist()

    def least_timestamp_ms(self, batch: Bytes, header: BatchHeader) -> int | None:
        return least_of(times_of(batch, header).timestamps_ms)

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
) -> tuple[bytes, memoryview]:
    """Our header and the Arrow message, separate, so that the batch is built with one copy."""
    columns = {
        KEY_COLUMN: rows.key,
        VALUE_COLUMN: rows.value,
        TIMESTAMP_COLUMN: _timestamp_column(rows.timestamps_ms, base_timestamp_ms),
        HEADERS_COLUMN: rows.headers,
    }
    present = {number: column for number, column in columns.items() if column is not None}
    return message_pieces(
        UNTYPED,
        present,
        rows.row_count,
        compression,
        key_column=KEY_COLUMN if KEY_COLUMN in present else NO_COLUMN,
        timestamp_column=TIMESTAMP_COLUMN if TIMESTAMP_COLUMN in present else NO_COLUMN,
        offset_deltas=offset_deltas,
    )


def _timestamp_column(timestamps_ms: Int64s | None, base_timestamp_ms: int) -> Any | None:
    """The timestamp column; None if all rows have the envelope's base timestamp."""
    if timestamps_ms is None or np.all(timestamps_ms == base_timestamp_ms):
        return None
    return numbers(timestamps_ms).view(WIRE_TIMESTAMP)


def read_rows(batch: Bytes, header: BatchHeader) -> ArrowRows:
    """The columns of an untyped arrow batch, fully checked; CorruptBatch if anything is wrong."""
    payload, ours = payload_of_batch(batch, header)
    if ours.version != ARROW_VERSION:
        raise CorruptBatch(f"these are rows of a typed topic, by version {ours.schema_id} of its columns")
    columns = read_message(payload[ours.header_length :], ours, header, UNTYPED)
    _check_headers(columns.get(HEADERS_COLUMN))
    return ArrowRows(
        key=columns.get(KEY_COLUMN),
        value=columns[VALUE_COLUMN],
        timestamps_ms=_timestamps_ms(columns.get(TIMESTAMP_COLUMN), header),
        headers=columns.get(HEADERS_COLUMN),
        offset_deltas=offset_deltas_of(ours, header),
    )


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
