"""The search for a timestamp inside one batch.

Indexes and envelopes select the batch. Only this search decodes a payload, once per query.
"""

import numpy as np
import pyarrow as pa

from sparklog.records.envelope import BatchHeader
from sparklog.records.payload import payload_of

_MICROSECONDS: int = 1_000


def first_record_from(
    batch: bytes, header: BatchHeader, timestamp_ms: int, offset_min: int
) -> tuple[int, int] | None:
    """Offset and timestamp (ms) of the first record with at least ``offset_min`` and ``timestamp_ms``."""
    columns = payload_of(header).to_columns(batch, header)
    offsets = columns.column("offset").to_numpy()
    times_us = columns.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False)
    matches = np.flatnonzero((times_us >= timestamp_ms * _MICROSECONDS) & (offsets >= offset_min))
    if not len(matches):
        return None
    first = matches[0]
    return int(offsets[first]), int(times_us[first] // _MICROSECONDS)
