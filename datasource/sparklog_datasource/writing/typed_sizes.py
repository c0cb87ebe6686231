"""How many bytes each typed row takes in a batch: an estimate from whole columns, nested ones too. PURE."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from sparklog.records.bridge import value_lengths
from sparklog_datasource.writing.row_sizes import Int64s

OFFSET_BYTES: Final = 4
_BITS_PER_BYTE: Final = 8


def typed_row_sizes(rows: pa.RecordBatch) -> Int64s:
    """For rows in the types of a topic's columns."""
    sizes = np.ones(rows.num_rows, np.int64)
    for column in rows.columns:
        sizes += _sizes(column)
    return sizes


def _sizes(column: Any) -> Int64s:
    kind = column.type
    count = len(column)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return OFFSET_BYTES + value_lengths(column)
    if pa.types.is_list(kind):
        return _item_sizes(column, [column.values])
    if pa.types.is_map(kind):
        return _item_sizes(column, [column.keys, column.items])
    if pa.types.is_struct(kind):
        sizes = np.ones(count, np.int64)
        for nth in range(kind.num_fields):
            sizes += _sizes(column.field(nth))
        return sizes
    return np.full(count, 1 + kind.bit_width // _BITS_PER_BYTE, np.int64)


def _item_sizes(column: Any, parts: list[Any]) -> Int64s:
    """The sizes of all items of each row; ``parts`` have the items of all rows, and maybe of others."""
    if not len(column):
        return np.zeros(0, np.int64)
    totals = np.zeros(len(parts[0]) + 1, np.int64)
    for part in parts:
        totals[1:] += np.cumsum(_sizes(part))
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * OFFSET_BYTES)
    sizes: Int64s = OFFSET_BYTES + totals[offsets[1:]] - totals[offsets[:-1]]
    return sizes
