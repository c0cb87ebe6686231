"""The texts of numbers, dates and times, without quotes: as JSON and the keys of records have them.

    -7   true   1.50   1e-07   -0.0   NaN   Infinity   2024-02-29   2024-02-29T12:00:00.000000Z

Arrow writes them, but for what it writes otherwise: the zero below zero, what is no number, the space within
a time, and years of more than 15 bits, of which it says only that they are out of range. A time's zone is not
looked up, because it is UTC.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sparklog.records.bridge import binaries, booleans, nulls_of, text_scalar

_YEARS: Final = (np.datetime64("-32000", "Y"), np.datetime64("32000", "Y"))
"""Between them Arrow writes dates; its own bounds are a bit wider."""
_LEAST_TIME: Final = "-290308-12-21T19:59:05.224192"
"""The time of the least number of 64 bits, which numpy keeps for what is no time."""
_FLOATS: Final = {pa.float32(): np.float32, pa.float64(): np.float64}


def scalar_texts(column: Any) -> Any:
    """A string array; null where the column is. Not for strings and bytes."""
    kind = column.type
    if kind in _FLOATS:
        return float_texts(column)
    if pa.types.is_date(kind):
        return _with_far_years(column, column.cast(pa.string()), np.int32, "D")
    if pa.types.is_timestamp(kind):
        texts = time_texts(column)
        return texts if kind.tz is None else joined(texts, "Z")
    return column.cast(pa.string())


def joined(*pieces: Any) -> Any:
    """Arrays and texts, row by row; null where one is."""
    return pc.binary_join_element_wise(
        *(text_scalar(piece) if isinstance(piece, str) else piece for piece in pieces), text_scalar("")
    )


def float_texts(column: Any, quote: str = "") -> Any:
    """``quote`` is put around NaN and infinities, which are no numbers in JSON."""
    texts = column.cast(pa.string())
    values = _numbers_of(column, _FLOATS[column.type])
    for which, text in (
        ((values == 0) & np.signbit(values), "-0.0"),
        (np.isnan(values), f"{quote}NaN{quote}"),
        (np.isposinf(values), f"{quote}Infinity{quote}"),
        (np.isneginf(values), f"{quote}-Infinity{quote}"),
    ):
        if which.any():
            texts = pc.if_else(booleans(which & ~nulls_of(column)), text_scalar(text), texts)
    return texts


def time_texts(column: Any) -> Any:
    """Times without their zone: ``2024-02-29T12:00:00.000000``."""
    texts = column.view(pa.timestamp("us")).cast(pa.string())
    texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    return _with_far_years(column, texts, np.int64, "us")


def _with_far_years(column: Any, texts: Any, dtype: Any, unit: str) -> Any:
    values = _numbers_of(column, dtype)
    first, last = (year.astype(f"M8[{unit}]").astype(np.int64) for year in _YEARS)
    are_far = (values < first) | (values > last)
    if not are_far.any():
        return texts
    are_far &= ~nulls_of(column)
    written = np.datetime_as_string(values[are_far].astype(np.int64).view(f"M8[{unit}]"))
    others = [(_LEAST_TIME if text == "NaT" else text).encode() for text in written.tolist()]
    return pc.replace_with_mask(texts, booleans(are_far), binaries(others).view(pa.string()))


def _numbers_of(column: Any, dtype: Any) -> npt.NDArray[Any]:
    """The values of a column of fixed width; arbitrary where a row is null."""
    data = column.buffers()[1]
    if data is None or len(column) == 0:
        return np.zeros(len(column), dtype)
    width = np.dtype(dtype).itemsize
    values: npt.NDArray[Any] = np.frombuffer(data, dtype, len(column), column.offset * width)
    return values
