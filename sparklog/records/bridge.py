"""Conversion between numpy and Arrow without pandas, for fixed-width integers and binary columns.

``pyarrow.array``, ``pyarrow.scalar`` and ``Array.to_numpy`` import pandas to check for its types. This costs
0.3 s of CPU in each new Python process, and Spark starts one for every task without a process to reuse. These
functions share the buffers of numpy and Arrow, and copy only bitmaps and texts.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bools = npt.NDArray[np.bool_]

_INT32_MAX: Final = 2**31 - 1
_NUMBERS: Final = {np.dtype(np.int32): pa.int32(), np.dtype(np.int64): pa.int64()}
_LARGE: Final = (pa.types.is_large_binary, pa.types.is_large_string, pa.types.is_large_list)


def numbers(values: npt.NDArray[Any], nulls: Bools | None = None) -> pa.Array:
    """An int32 or int64 column that shares the memory of ``values``."""
    own = np.ascontiguousarray(values)
    validity = None if nulls is None else _bitmap(~nulls)
    return pa.Array.from_buffers(_NUMBERS[own.dtype], len(own), [validity, pa.py_buffer(own)])


def booleans(values: Bools) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bitmap(values)])


def binaries(values: Sequence[bytes | None]) -> pa.Array:
    """A binary column of single values; OverflowError for more than 2 GB."""
    present = [value for value in values if value is not None]
    validity: pa.Buffer | None = None
    lengths: Iterable[int] = map(len, present)
    if len(present) < len(values):
        validity = _bitmap(np.array([value is not None for value in values], np.bool_))
        lengths = (0 if value is None else len(value) for value in values)
    ends = list(accumulate(lengths, initial=0))
    if ends[-1] > _INT32_MAX:
        raise OverflowError(f"{ends[-1]} bytes do not fit one binary column; write smaller batches")
    buffers = [validity, pa.py_buffer(np.array(ends, np.int32)), pa.py_buffer(b"".join(present))]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers)


def repeated_text(text: str, count: int) -> pa.Array:
    """The same string ``count`` times."""
    data = text.encode()
    ends = np.arange(count + 1, dtype=np.int64) * len(data)
    if ends[-1] > _INT32_MAX:
        raise OverflowError(f"{count} times {text!r} do not fit one string column")
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data * count)]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def text_scalar(text: str) -> Any:
    """A text as an argument of Arrow's compute functions."""
    return repeated_text(text, 1)[0]


def values_of(column: Any) -> npt.NDArray[Any]:
    """The numbers of an integer, timestamp or duration column; arbitrary where a row is null."""
    dtype: np.dtype[Any] = np.dtype(np.int32 if column.type == pa.int32() else np.int64)
    if column.type.bit_width != 8 * dtype.itemsize:
        raise TypeError(f"a column of type {column.type} has no {dtype} in it")
    data = column.buffers()[1]
    if data is None or len(column) == 0:
        return np.zeros(len(column), dtype)
    values: npt.NDArray[Any] = np.frombuffer(data, dtype, len(column), column.offset * dtype.itemsize)
    return values


def nulls_of(column: Any) -> Bools:
    """Whether each row of an array is null."""
    if column.null_count == 0:
        return np.zeros(len(column), np.bool_)
    validity = column.buffers()[0]
    if validity is None:  # a column of type null has no bitmap
        return np.ones(len(column), np.bool_)
    first = column.offset // 8
    last = (column.offset + len(column) + 7) // 8
    bits = np.unpackbits(np.frombuffer(validity, np.uint8, last - first, first), bitorder="little")
    start = column.offset - 8 * first
    nulls: Bools = bits[start : start + len(column)] == 0
    return nulls


def value_lengths(column: Any) -> npt.NDArray[np.int64]:
    """The length of each value of a binary, string or list column; 0 for nulls."""
    kind = column.type
    is_large = any(test(kind) for test in _LARGE)
    offsets = column.buffers()[1]
    if len(column) == 0 or offsets is None:
        return np.zeros(len(column), np.int64)
    dtype = np.dtype(np.int64 if is_large else np.int32)
    ends = np.frombuffer(offsets, dtype, len(column) + 1, column.offset * dtype.itemsize)
    lengths = np.diff(ends).astype(np.int64)
    if column.null_count:
        lengths[nulls_of(column)] = 0  # the buffer may have bytes for a null, too
    return lengths


def extent_of(column: Any) -> tuple[int, int]:
    """Where the rows of a string, binary, list or map column begin and end in the values that it refers to;
    nulls may have some, too. Not for large types.
    """
    offsets = column.buffers()[1]
    if len(column) == 0 or offsets is None:
        return 0, 0
    ends = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4)
    return int(ends[0]), int(ends[-1])


def _bitmap(bits: Bools) -> pa.Buffer:
    return pa.py_buffer(np.packbits(bits, bitorder="little"))
