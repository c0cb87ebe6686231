"""The record keys of typed rows: the text of the key column, by which a row's partition is chosen.

Text and bytes are taken as they are. Of other types it is the text in JSON, without the quotes of dates and
timestamps: ``-7``, ``true``, ``1.50``, ``2024-02-29``, ``2024-02-29T12:00:00.000000Z``. Equal values of a
column have equal texts, so that they go to one partition.
"""

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_SPECIAL: Final = {"-0": "-0.0", "nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""What Arrow writes of floating-point numbers, and what JSON has."""


def key_texts(column: Any) -> Any:
    """A binary or string array of the keys; null where the column is."""
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        return column
    texts = column.cast(pa.string())
    if pa.types.is_floating(kind):
        for arrow, json in _SPECIAL.items():
            texts = pc.if_else(pc.equal(texts, arrow), json, texts)
    elif pa.types.is_timestamp(kind):
        texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    return texts
