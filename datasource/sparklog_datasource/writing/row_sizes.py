"""How many bytes each row takes in a batch: an estimate, a little too large, from whole columns. PURE."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparklog.records.bridge import value_lengths

Int64s = npt.NDArray[np.int64]

ROW_BYTES: Final = 16
"""Offsets and validity of key, value and headers."""

HEADER_BYTES: Final = 10
"""The same for one header."""


def row_sizes(rows: pa.RecordBatch) -> Int64s:
    """For rows with the columns key, value, headers, of which key and headers may be of type null."""
    sizes = np.full(rows.num_rows, ROW_BYTES, np.int64)
    for name in ("key", "value"):
        column = rows.column(name)
        if not pa.types.is_null(column.type):
            sizes += value_lengths(column)
    headers = rows.column("headers")
    if not pa.types.is_null(headers.type) and headers.null_count < len(headers):
        sizes += _header_sizes(headers)
    return sizes


def _header_sizes(headers: Any) -> Int64s:
    counts = value_lengths(headers)
    items = headers.flatten()
    item_sizes = HEADER_BYTES + value_lengths(items.field("key")) + value_lengths(items.field("value"))
    ends = np.cumsum(counts)
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(item_sizes)])
    sizes: Int64s = total[ends] - total[ends - counts]
    return sizes
