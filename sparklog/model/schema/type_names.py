"""The names of types that Spark's DDL and Spark's JSON have, and what sparklog says to those it lacks."""

import difflib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import DECIMAL, DECIMAL_DIGITS_MAX, SCALAR_NAMES, Scalar

_OTHER_NAMES: Final = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": DECIMAL,
    "numeric": DECIMAL,
    "timestamp_ltz": "timestamp",
}
_NAMES: Final[Mapping[str, str]] = MappingProxyType({**{name: name for name in SCALAR_NAMES}, **_OTHER_NAMES})

_INSTEAD: Final[Mapping[str, str]] = MappingProxyType(
    {
        "void": "give the type that the values will have",
        "null": "give the type that the values will have",
        "time": "use timestamp_ntz, or bigint with the unit in the name",
        "interval": "use bigint with the unit in the name",
        "variant": "use string with JSON, or a struct",
        "char": "use string",
        "character": "use string",
        "varchar": "use string",
        "geometry": "use binary with WKB",
        "geography": "use binary with WKB",
        "udt": "use the type that it is stored as",
    }
)
"""Spark's types that a topic cannot have, each with the remedy."""

_DECIMAL_DEFAULT: Final = (10, 0)
PLAIN_COLLATION: Final = "utf8_binary"
"""The collation that compares bytes, as strings without a collation do."""


def known_name(path: str, name: str) -> str:
    """The name of the scalar type that Spark calls ``name``. Raises SchemaError, as ``scalar_type``."""
    known = _NAMES.get(name.lower())
    if known is None:
        raise _unknown(path, name.lower())
    return known


def scalar_type(path: str, name: str, numbers: Sequence[int] | None) -> Scalar:
    """The type with this name, and with these numbers in parentheses after it, if there are any.

    Raises SchemaError, which names the column at ``path``.
    """
    known = known_name(path, name)
    if known == DECIMAL:
        return _decimal(path, numbers)
    if numbers is not None:
        listed = ",".join(map(str, numbers))
        raise SchemaError(f"column {path}: type {name.lower()}({listed}) is not supported; use {known}")
    return Scalar(known)


def refuse_collation(path: str, collation: str) -> None:
    """Raises SchemaError unless the collation is that of strings without one."""
    if collation.lower() != PLAIN_COLLATION:
        raise SchemaError(
            f"column {path}: collation {collation} is not supported; use string without a collation"
        )


def _unknown(path: str, name: str) -> SchemaError:
    remedy = _INSTEAD.get(name)
    if remedy is not None:
        return SchemaError(f"column {path}: type {name} is not supported; {remedy}")
    near = difflib.get_close_matches(name, [*_NAMES, "array", "map", "struct"], n=1)
    remedy = (
        f"did you mean {near[0]}?" if near else f"types are {', '.join(SCALAR_NAMES)}, array, map, struct"
    )
    return SchemaError(f"column {path}: there is no type {name!r}; {remedy}")


def _decimal(path: str, numbers: Sequence[int] | None) -> Scalar:
    given = _DECIMAL_DEFAULT if numbers is None else tuple(numbers)
    precision, scale = given[0], given[1] if len(given) > 1 else 0
    if (
        len(given) > len(_DECIMAL_DEFAULT)
        or not 0 < precision <= DECIMAL_DIGITS_MAX
        or not 0 <= scale <= precision
    ):
        listed = ",".join(map(str, given))
        raise SchemaError(
            f"column {path}: decimal({listed}) is not supported; use decimal(digits,digits after the point), "
            f"with 1 to {DECIMAL_DIGITS_MAX} digits, of which no more than all are after the point"
        )
    return Scalar(DECIMAL, precision, scale)
