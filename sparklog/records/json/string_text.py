"""Strings as JSON's, without the quotes around them, by as many passes as there are kinds of characters to
escape: none, of most texts.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from sparklog.records.bridge import extent_of

_CONTROLS_END: Final = 0x20
_SHORT: Final = {ord('"'): '\\"', ord("\\"): "\\\\", 8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
_CONTROL_ADDED: Final = len("\\u0000") - 1


def escaped(column: Any) -> Any:
    """The array with escapes for quotes, backslashes and control characters; null where the column is."""
    data = string_bytes(column)
    if not added_by_escapes(data):
        return column
    found = np.unique(data[(data < _CONTROLS_END) | (data == ord('"')) | (data == ord("\\"))]).tolist()
    for code in sorted(found, key=lambda code: code != ord("\\")):  # backslashes first: escapes have some
        escape = _SHORT.get(code, f"\\u{code:04x}")
        column = pc.replace_substring(column, pattern=chr(code), replacement=escape)
    return column


def added_by_escapes(data: npt.NDArray[np.uint8]) -> int:
    """At most so many bytes are added to these by escapes; 0 if there is nothing to escape."""
    controls = np.count_nonzero(data < _CONTROLS_END)
    others = np.count_nonzero(data == ord('"')) + np.count_nonzero(data == ord("\\"))
    return int(controls * _CONTROL_ADDED + others)


def string_bytes(column: Any) -> npt.NDArray[np.uint8]:
    """The bytes of all values of a string or binary column, with those that nulls may have."""
    data = column.buffers()[2]
    first, end = extent_of(column)
    return np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8, end - first, first)
