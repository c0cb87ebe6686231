"""Literals of a condition as values of a column's type, or a refusal that shows how they are written."""

import math
import re
from datetime import date, datetime
from typing import Final

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import DECIMAL, Field, Scalar
from sparklog.model.schema.ddl_text import type_text
from sparklog.model.schema.paths import quoted
from sparklog.model.schema.predicates.tokens import Token
from sparklog.model.schema.predicates.tree import Value

TYPED: Final = ("date", "timestamp", "timestamp_ntz")
"""Words that may stand before a text, as in DATE '2024-02-29'."""

_INTEGER_BITS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_EXAMPLES: Final = {
    "boolean": "true",
    "float": "5.25, 5e-3 or 'NaN'",
    "double": "5.25, 5e-3 or 'NaN'",
    "string": "'text'",
    "binary": "X'00FF'",
    "date": "'2024-02-29'",
    "timestamp": "'2024-02-29T12:00:00Z' or with +01:00, because a plan does not know the session's zone",
    "timestamp_ntz": "'2024-02-29T12:00:00', without a zone",
}
_EPOCH: Final = date(1970, 1, 1).toordinal()
_EPOCH_TIME: Final = datetime(1970, 1, 1)  # noqa: DTZ001 (in no zone)
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME: Final = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})(?:[T ](?P<time>\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?"
    r"(?P<zone>Z|[+-]\d{2}:\d{2})?",
    re.ASCII,
)
_NOT_FINITE: Final = {"nan", "infinity", "-infinity", "+infinity", "inf", "-inf", "+inf"}
_DAY_US: Final = 24 * 60 * 60 * 1_000_000


def value_of(column: Field, token: Token, *, sign: str = "", typed: str = "") -> Value:
    """The literal ``token`` as a value of ``column``, a scalar; ``sign`` stands before a number, ``typed`` is
    one of ``TYPED`` before a text. SchemaError for a literal of another type.
    """
    assert isinstance(column.type, Scalar), "conditions are on scalars"
    name = column.type.name
    found: Value | None = None
    if token.kind == "number":
        found = _number(column.type, sign + token.text)
    elif sign or typed not in ("", name):
        found = None
    elif token.kind == "text":
        found = _of_text(name, token.text)
    elif token.kind == "bytes" and name == "binary":
        found = bytes.fromhex(token.text)
    elif token.kind == "word" and name == "boolean" and token.text.lower() in ("true", "false"):
        found = int(token.text.lower() == "true")
    if found is None:
        shown = f"{typed.upper()} {token.text!r}".strip() if token.kind == "text" else sign + token.text
        raise SchemaError(
            f"{shown[:60]} at character {token.position} is no value of column {quoted(column.name)}, a "
            f"{type_text(column.type)}: write {_example(column.type)}"
        )
    return found


def _example(kind: Scalar) -> str:
    if kind.name in _INTEGER_BITS:
        half = 1 << (_INTEGER_BITS[kind.name] - 1)
        return f"a whole number from {-half} to {half - 1}"
    if kind.name == DECIMAL:
        before, after = kind.precision - kind.scale, kind.scale
        return f"at most {before} digits before the point and {after} after it"
    return _EXAMPLES[kind.name]


def _number(kind: Scalar, text: str) -> Value | None:
    if kind.name in ("float", "double"):
        return float(text)
    is_whole = text.lstrip("+-").isdigit()
    if kind.name in _INTEGER_BITS and is_whole:
        if len(text) > 20:
            return None
        number, half = int(text), 1 << (_INTEGER_BITS[kind.name] - 1)
        return number if -half <= number < half else None
    if kind.name == DECIMAL and "e" not in text.lower():
        before, _, after = text.partition(".")
        after = after.rstrip("0")
        digits = f"{before}{after:0<{kind.scale}}"
        fits = len(after) <= kind.scale and len(digits.lstrip("+-0")) <= kind.precision
        return int(digits) if fits else None
    return None


def _of_text(name: str, text: str) -> Value | None:
    if name in ("float", "double"):
        return float(text.strip()) if text.strip().lower() in _NOT_FINITE else None
    try:
        if name == "string":
            return text.encode()
        if name == "date":
            return date.fromisoformat(text).toordinal() - _EPOCH if _DAY.fullmatch(text) else None
        if name in ("timestamp", "timestamp_ntz"):
            return _microseconds(text, has_zone=name == "timestamp")
    except ValueError:  # a day that no month has, half of a character
        return None
    return None


def _microseconds(text: str, *, has_zone: bool) -> int | None:
    found = _TIME.fullmatch(text)
    if found is None or (found["zone"] is not None) != has_zone:
        return None
    moment = datetime.fromisoformat(f"{found['day']}T{found['time'] or '00:00'}{found['zone'] or ''}")
    offset = moment.utcoffset()
    passed = moment.replace(tzinfo=None) - _EPOCH_TIME
    if offset is not None:
        passed -= offset
    return passed.days * _DAY_US + passed.seconds * 1_000_000 + passed.microseconds


def is_nan(value: Value) -> bool:
    """Whether a literal is the number that is greater than all others."""
    return isinstance(value, float) and math.isnan(value)
