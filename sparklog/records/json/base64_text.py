"""Base64 of each value of a binary column (RFC 4648, with padding), without an object for each.

Values are laid side by side, each filled up with zeros to a multiple of three bytes. Base64 makes four
characters of three bytes, so that the whole can be encoded at once, and each value has characters of its own.
Those of the zeros become ``=``.
"""

import binascii
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparklog.records.bridge import booleans, nulls_of, value_lengths
from sparklog.records.json.string_text import string_bytes

_GROUP_BYTES: Final = 3
_GROUP_CHARACTERS: Final = 4


def base64_texts(column: Any) -> Any:
    """A string array; null where the column is."""
    count = len(column)
    lengths = value_lengths(column)
    groups = -(-lengths // _GROUP_BYTES)
    ends = np.cumsum(groups)
    missing = groups * _GROUP_BYTES - lengths
    filled = np.zeros(int(groups.sum()) * _GROUP_BYTES, np.uint8)
    is_value = np.ones(len(filled), np.bool_)
    is_value[_last(ends * _GROUP_BYTES, missing)] = False
    filled[is_value] = string_bytes(column.drop_null())
    characters = np.frombuffer(binascii.b2a_base64(filled.data, newline=False), np.uint8).copy()
    characters[_last(ends * _GROUP_CHARACTERS, missing)] = ord("=")
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = ends * _GROUP_CHARACTERS
    texts = pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(characters)])
    if not column.null_count:
        return texts
    return pc.if_else(booleans(~nulls_of(column)), texts, pa.nulls(count, pa.string()))


def _last(ends: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The positions of the last ``counts`` places, at most two, before each of ``ends``."""
    return np.concatenate([ends[counts >= 1] - 1, ends[counts >= 2] - 2])
