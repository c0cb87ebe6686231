"""The *records* payload: Kafka v2 records, as any Kafka client sends and expects them.

Decoding to columns is our own: numpy for many records at once (``kafka.spans``), plain Python for a few
(``kafka.walk``). aiokafka's compiled reader is not used, because it trusts some lengths, and reads beyond the
buffer if bytes from the network contain wrong ones.

Failure: CorruptBatch for bytes that do not match the envelope; the reason has counts and positions.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa

from sparklog.model.errors import CorruptBatch
from sparklog.records.bridge import binaries
from sparklog.records.codecs import decompress, pieces_of
from sparklog.records.envelope import ENVELOPE_BYTES, BatchHeader, Bytes, Compression
from sparklog.records.kafka.check import check_records
from sparklog.records.kafka.encode import batch_of_rows
from sparklog.records.kafka.pieces import Measured, check_growth, measure
from sparklog.records.kafka.spans import (
    FEW_RECORDS,
    Spans,
    boundaries,
    gather,
    headers_array,
    headers_list,
    spans_of,
    text_array,
)
from sparklog.records.kafka.walk import WalkedRecord, check_count, walk
from sparklog.records.row_columns import (
    CREATE_TIME,
    HEADERS_TYPE,
    LOG_APPEND_TIME,
    Int64s,
    least_of,
    normalise,
    row_batch,
)
from sparklog.records.row_times import Times

SMALL_RECORD_COUNT: Final = FEW_RECORDS
"""Smaller batches are decoded record by record; from here on numpy is quicker (measured)."""


class KafkaRecords:
    """Implements ``payload.Payload``."""

    def validate(self, batch: Bytes, header: BatchHeader) -> None:
        pieces = pieces_of(header.compression, _payload(batch, header))
        records, more = next(pieces, b""), next(pieces, None)
        if more is not None:
            for _ in measure(chain((records, more), pieces), header.record_count, header.last_offset_delta):
                """Each record is checked as it is measured."""
        elif header.record_count < SMALL_RECORD_COUNT:
            check_records(records, header.record_count, header.last_offset_delta)
        else:
            for _ in _chunks(records, header):
                """Each chunk is checked as it is measured."""

    def to_columns(self, batch: Bytes, header: BatchHeader) -> pa.RecordBatch:
        records = records_of(batch, header)
        if header.record_count < SMALL_RECORD_COUNT:
            return _walked_columns(list(walk(records, header.record_count)), header)
        rows = [_span_columns(records, spans, header) for spans in _chunks(records, header)]
        return rows[0] if len(rows) == 1 else pa.concat_batches(rows)

    def times(self, batch: Bytes, header: BatchHeader) -> Times:
        measured = list(_measured(batch, header))
        deltas = [one.offset_deltas for one in measured] or [np.zeros(0, np.int64)]
        offsets = header.base_offset + np.concatenate(deltas)
        if header.is_log_append_time:
            return Times(offsets, np.full(len(offsets), header.max_timestamp_ms, np.int64))
        deltas_ms = [one.timestamp_deltas_ms for one in measured] or [np.zeros(0, np.int64)]
        return Times(offsets, np.int64(header.base_timestamp_ms) + np.concatenate(deltas_ms))

    def keyless_rows(self, batch: Bytes, header: BatchHeader, rows_max: int) -> tuple[int, list[int]]:
        count = passed = 0
        indexes: list[int] = []
        for measured in _measured(batch, header):
            keyless = (measured.key_lengths < 0).nonzero()[0]
            indexes += (passed + keyless[: rows_max - len(indexes)]).tolist()
            count += len(keyless)
            passed += len(measured.key_lengths)
        return count, indexes

    def least_timestamp_ms(self, batch: Bytes, header: BatchHeader) -> int | None:
        found = (
            least_of(header.base_timestamp_ms + measured.timestamp_deltas_ms)
            for measured in _measured(batch, header)
        )
        return min((least_ms for least_ms in found if least_ms is not None), default=None)

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
        return batch_of_rows(
            normalise(columns, now_ms),
            now_ms=now_ms,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            is_transactional=is_transactional,
        )


def records_of(batch: Bytes, header: BatchHeader) -> bytes:
    """The decompressed records of a batch, without the envelope."""
    return decompress(header.compression, _payload(batch, header))


def _measured(batch: Bytes, header: BatchHeader) -> Iterator[Measured]:
    """The deltas and key lengths of a batch's records, with one decompressed piece in memory at a time."""
    pieces = pieces_of(header.compression, _payload(batch, header))
    return measure(pieces, header.record_count, header.last_offset_delta)


def _payload(batch: Bytes, header: BatchHeader) -> memoryview:
    if len(batch) < header.size_bytes:
        raise CorruptBatch(f"{len(batch)} bytes are less than the batch's {header.size_bytes}")
    return memoryview(batch)[ENVELOPE_BYTES : header.size_bytes]


def _chunks(records: bytes, header: BatchHeader) -> Iterator[Spans]:
    """The spans of all records, at most ``CHUNK_RECORDS`` at a time, checked against the envelope."""
    check_count(records, header.record_count)
    position, left, previous = 0, header.record_count, -1
    while left:
        try:
            begins, position = boundaries(records, position, len(records), left)
        except IndexError:
            raise CorruptBatch(f"{left} of {header.record_count} records are missing") from None
        spans = spans_of(records, begins)
        check_growth(spans.offset_deltas, previous, header.last_offset_delta)
        previous = int(spans.offset_deltas[-1])
        left -= len(begins)
        yield spans
    if position != len(records):
        raise CorruptBatch(f"{len(records) - position} bytes are left after {header.record_count} records")


def _span_columns(records: bytes, spans: Spans, header: BatchHeader) -> pa.RecordBatch:
    return _rows(
        header,
        spans.timestamp_deltas_ms,
        spans.offset_deltas,
        gather(records, spans.key_starts, spans.key_lengths),
        gather(records, spans.value_starts, spans.value_lengths),
        headers_array(records, spans.headers, len(spans.offset_deltas)),
    )


def _walked_deltas(records: Sequence[WalkedRecord]) -> Int64s:
    return np.array([record.offset_delta for record in records], np.int64)


def _walked_columns(records: Sequence[WalkedRecord], header: BatchHeader) -> pa.RecordBatch:
    offset_deltas = _walked_deltas(records)
    check_growth(offset_deltas, -1, header.last_offset_delta)
    return _rows(
        header,
        np.array([record.timestamp_delta_ms for record in records], np.int64),
        offset_deltas,
        binaries([record.key for record in records]),
        binaries([record.value for record in records]),
        _walked_headers(records),
    )


def _walked_headers(records: Sequence[WalkedRecord]) -> pa.Array:
    counts = np.array([len(record.headers) for record in records], np.int64)
    if not counts.any():
        return pa.nulls(len(records), HEADERS_TYPE)
    pairs = [pair for record in records for pair in record.headers]
    keys = text_array(binaries([key for key, _ in pairs]))
    return headers_list(keys, binaries([value for _, value in pairs]), counts)


def _rows(
    header: BatchHeader,
    timestamp_deltas_ms: Int64s,
    offset_deltas: Int64s,
    key: pa.Array,
    value: pa.Array,
    headers: pa.Array,
) -> pa.RecordBatch:
    count = len(offset_deltas)
    if header.is_log_append_time:
        timestamps_ms = np.full(count, header.max_timestamp_ms)
    else:
        timestamps_ms = np.int64(header.base_timestamp_ms) + timestamp_deltas_ms
    return row_batch(
        key=key,
        value=value,
        timestamps_ms=timestamps_ms,
        headers=headers,
        offsets=header.base_offset + offset_deltas,
        timestamp_types=np.full(
            count, LOG_APPEND_TIME if header.is_log_append_time else CREATE_TIME, np.int32
        ),
    )
