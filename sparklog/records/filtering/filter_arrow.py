"""Removal of rows from an *arrow* batch: ``take`` on its columns, and offset deltas if offsets have gaps."""

from typing import Any

import numpy as np
import pyarrow as pa

from sparklog.records.arrow.arrow_payload import ArrowRows, payload_pieces, read_rows
from sparklog.records.arrow.header import parse_arrow_header
from sparklog.records.arrow.layout import parse_layout
from sparklog.records.decoding import Batch
from sparklog.records.envelope import ENVELOPE_BYTES, Bytes, Compression
from sparklog.records.filtering.run import Run, rebuilt_envelope
from sparklog.records.row_columns import Int64s, RowColumns

_CODECS = {None: Compression.NONE, 0: Compression.LZ4, 1: Compression.ZSTD}


class ArrowRun(Run):
    """One arrow batch."""

    __slots__ = ("_batch", "_rows")

    def __init__(self, batch: Bytes, origin: Batch, rows: ArrowRows) -> None:
        header = origin[1]
        count = header.record_count
        super().__init__(
            [origin],
            pa.nulls(count, pa.binary()) if rows.key is None else rows.key,
            header.base_offset + rows.offset_deltas,
            rows.value.is_null().to_numpy(zero_copy_only=False),
            np.array([count]),
        )
        self._batch = batch
        self._rows = rows

    @classmethod
    def decode(cls, batch: Bytes, origin: Batch) -> "ArrowRun":
        return cls(batch, origin, read_rows(batch, origin[1]))

    def rebuild(self, nth: int, rows: Int64s, delete_horizon_ms: int | None = None) -> bytes:
        header, all_rows = self.batches[nth][1], self._rows
        timestamps_ms, offset_deltas = all_rows.timestamps_ms[rows], all_rows.offset_deltas[rows]
        indexes = pa.array(rows)
        columns = RowColumns(
            row_count=len(rows),
            key=_taken(all_rows.key, indexes),
            value=all_rows.value.take(indexes),
            timestamps_ms=None if header.is_log_append_time else timestamps_ms,
            headers=_taken(all_rows.headers, indexes),
        )
        is_dense = offset_deltas[-1] == len(rows) - 1
        pieces = payload_pieces(
            columns,
            header.base_timestamp_ms if delete_horizon_ms is None else delete_horizon_ms,
            self._compression(),
            None if is_dense else offset_deltas,
        )
        return rebuilt_envelope(header, pieces, timestamps_ms, delete_horizon_ms)

    def _compression(self) -> Compression:
        """The codec of the producer's buffers."""
        payload = memoryview(self._batch)[ENVELOPE_BYTES : self.batches[0][1].size_bytes]
        return _CODECS[parse_layout(payload[parse_arrow_header(payload).header_length :]).codec]


def _taken(column: Any | None, indexes: pa.Array) -> Any | None:
    """The rows of a column; None, as for an absent column, if all of them are null."""
    if column is None:
        return None
    taken = column.take(indexes)
    return None if taken.null_count == len(taken) else taken
