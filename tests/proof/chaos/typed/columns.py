"""Columns of the typed topic: names that say which column it is, and values for each type.

A column is named after its id (``c7``, after it was renamed ``c7_2``), so that a name alone says which values
belong there, whatever anybody else believes. ``again`` is the exception: it is dropped and added again.
"""

import re
import string
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

from sparklog.model.schema.data_types import Array, DataType, Scalar

TOPIC: Final = "typed"
KEY: Final = "name"
"""The column that names a row, and decides its partition. It is never changed."""
KEY_ID: Final = 1
AGAIN: Final = "again"
DDL: Final = f"{KEY} string, c2 int, c3 string, c4 float, c5 decimal(6,2), c6 date"
TOPIC_SETTINGS: Final[Mapping[str, str]] = {"sparklog.schema": DDL, "sparklog.key": KEY}

TYPES: Final = (
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(6,2)",
    "string",
    "binary",
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
    "array<int>",
)
"""Of columns that are added."""
WIDER: Final[Mapping[str, str]] = {
    "tinyint": "smallint",
    "smallint": "int",
    "int": "bigint",
    "float": "double",
    "decimal(6,2)": "decimal(9,3)",
    "decimal(9,3)": "decimal(14,5)",
    "date": "timestamp_ntz",
}
BITS: Final[Mapping[str, int]] = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
NULLS: Final = 0.1
SMALL: Final = 0.7
"""So many numbers fit the narrowest type: a reader that keeps a narrower one goes on."""
TEXT_MAX: Final = 40
_NAMED = re.compile(r"c(\d+)(_\d+)?")
_DAY = date(2024, 2, 29)


def id_of(name: str, planned: int) -> int:
    """Which column a name stands for; ``planned`` is what the planner of a query or write believes."""
    if name == KEY:
        return KEY_ID
    named = _NAMED.fullmatch(name)
    return planned if named is None else int(named[1])


def value_of_type(data_type: DataType, rng: Random) -> Any:
    """A value that a column of this type holds, now and then null. Floats are exact in both widths."""
    if rng.random() < NULLS:
        return None
    if isinstance(data_type, Array):
        return [value_of_type(data_type.element, rng) for _ in range(rng.randrange(4))]
    assert isinstance(data_type, Scalar)
    return _scalar(data_type, rng)


def _scalar(kind: Scalar, rng: Random) -> Any:
    name = kind.name
    if name in BITS:
        return _integer(BITS["tinyint"] if rng.random() < SMALL else BITS[name], rng)
    if name == "decimal":
        bits = 12 if rng.random() < SMALL else int((kind.precision - 1) * 3.3)
        return Decimal(_integer(bits, rng)).scaleb(-kind.scale)
    if name in ("float", "double"):
        return _integer(20, rng) / 4 if name == "float" or rng.random() < SMALL else rng.random() * 1e300
    if name == "boolean":
        return rng.random() < 0.5
    if name == "date":
        return _DAY + timedelta(days=rng.randrange(10_000))
    if name in ("timestamp", "timestamp_ntz"):
        return _time(name, rng)
    text = "".join(rng.choices(string.printable + "äß€", k=rng.randrange(TEXT_MAX)))
    return text.encode() if name == "binary" else text


def _integer(bits: int, rng: Random) -> int:
    return rng.randrange(-(1 << bits), 1 << bits)


def _time(name: str, rng: Random) -> datetime:
    """One without a zone is mostly at midnight, which a date can be."""
    seconds = 0 if name == "timestamp_ntz" and rng.random() < SMALL else rng.randrange(86_400_000_000) / 1e6
    zone = UTC if name == "timestamp" else None
    return datetime(_DAY.year, _DAY.month, _DAY.day, tzinfo=zone) + timedelta(
        days=rng.randrange(99), seconds=seconds
    )
