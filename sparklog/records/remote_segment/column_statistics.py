"""What the footer of a typed topic's ``.arrow`` object says of the columns of each record batch.

By the id of a column: the number of its nulls, and its least and greatest value as the batch's header has
them (``arrow.column_bounds``), so that a reader can skip a record batch. A column that is not named is null
in all rows. A footer has room for so much: from there on a record batch has ``null``, and must be read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sparklog.model.errors import CorruptBatch

COLUMNS_KEY: Final = "columns"
"""The name of the list, beside those of ``block_statistics``."""

TEXT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Most bytes of all these statistics in a footer."""


class OneColumn(NamedTuple):
    """``least`` and ``greatest`` None: there is no such bound."""

    null_count: int
    least: bytes | None
    greatest: bytes | None


ColumnStatistics = Mapping[int, OneColumn]


@dataclass(slots=True)
class PackedColumns:
    """The JSON texts of the record batches so far, ``null`` from where they would become too long."""

    texts: list[str] = field(default_factory=list)
    _room: int = TEXT_BYTES_MAX

    def add(self, columns: ColumnStatistics) -> None:
        text = json.dumps(
            {
                number: [one.null_count, _hex(one.least), _hex(one.greatest)]
                for number, one in columns.items()
            },
            separators=(",", ":"),
        )
        self._room -= len(text)
        self.texts.append(text if self._room >= 0 else "null")


def _hex(bound: bytes | None) -> str | None:
    return None if bound is None else bound.hex()


def parse_columns(found: Any) -> list[ColumnStatistics | None]:
    """The list of that name; CorruptBatch for what ``PackedColumns`` cannot have written."""
    if not isinstance(found, list):
        raise CorruptBatch(f"the statistics of columns in an .arrow object are {found!r}, no list")
    try:
        return [None if one is None else _parse(one) for one in found]
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise CorruptBatch(
            f"the statistics of columns in an .arrow object cannot be read: {error!r}"
        ) from None


def _parse(columns: Mapping[str, Sequence[Any]]) -> ColumnStatistics:
    return {
        int(number): OneColumn(int(nulls), _bytes(least), _bytes(greatest))
        for number, (nulls, least, greatest) in columns.items()
    }


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
