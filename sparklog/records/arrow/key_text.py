"""The record keys of typed rows: the text of the key column, by which a row's partition is chosen.

Text and bytes are taken as they are. Of other types it is the text in JSON, without the quotes of dates and
timestamps: ``-7``, ``true``, ``1.50``, ``2024-02-29``, ``2024-02-29T12:00:00.000000Z``. Equal values of a
column have equal texts, so that they go to one partition.
"""

from typing import Any

import pyarrow as pa

from sparklog.records.arrow.scalar_text import scalar_texts


def key_texts(column: Any) -> Any:
    """A binary or string array of the keys; null where the column is."""
    kind = column.type
    return column if pa.types.is_binary(kind) or pa.types.is_string(kind) else scalar_texts(column)
