"""The text of what a column holds: the same of a sent value, of an Arrow value, and of JSON.

A value that a wider column shows has the text that it had: ``1.50`` and ``1.500`` are 1.5, and a timestamp
without zone at midnight is a date.
"""

import base64
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

MIDNIGHT: Final = "T00:00:00.000000"
FLOATS: Final = ("float", "double")


def text_of(value: Any) -> str:
    """Of a value that is not null, as Python has it."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return _float_text(value)
        case Decimal():
            return f"{value.normalize() + 0:f}"
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return _time_text(value)
        case date():
            return value.isoformat()
        case list():
            return f"[{','.join('null' if one is None else text_of(one) for one in value)}]"
        case int() | str():
            return str(value)
    raise TypeError(f"{value!r} has no text: cells are of scalar types, or arrays of them")


def text_of_json(kind: Any, value: Any) -> str:
    """Of a value of JSON that is not null; ``kind`` is the column's type, as documents have it. Numbers
    with a point are read as ``Decimal``.
    """
    if isinstance(kind, dict):
        texts = ("null" if one is None else text_of_json(kind["array"], one) for one in value)
        return f"[{','.join(texts)}]"
    if kind in FLOATS:
        return _float_text(float(value))
    if kind.startswith("decimal"):
        return text_of(Decimal(value))
    if kind == "timestamp_ntz":
        return str(value).removesuffix(MIDNIGHT)
    return text_of(value)


def _float_text(value: float) -> str:
    return (
        repr(value)
        if math.isfinite(value)
        else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    )


def _time_text(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat(timespec="microseconds").removesuffix(MIDNIGHT)
    return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
