"""What the footer of an ``.arrow`` object says of each of its record batches.

Bounds are of rows, so that a reader can skip a record batch: offsets and timestamps exactly; keys by their
first bytes, as text in hex. A greatest key that is longer than that has no bound, since its beginning is less
than it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sparklog.model.errors import CorruptBatch
from sparklog.records.remote_segment.column_statistics import COLUMNS_KEY, ColumnStatistics, parse_columns

KEY_BYTES_MAX: Final = 32


class BlockStatistics(NamedTuple):
    """Bounds of one record batch with at least one row. Keys None: no row has one, or there is no bound."""

    row_count: int
    first_offset: int
    last_offset: int
    least_timestamp: int
    greatest_timestamp: int
    null_keys: int
    least_key: str | None
    greatest_key: str | None
    crc: int = 0
    """CRC-32C of the record batch's message, metadata and body."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Those of all record batches. ``columns`` is empty but of a typed topic."""

    blocks: list[BlockStatistics]
    columns: list[ColumnStatistics | None]


def pack_statistics(blocks: Sequence[BlockStatistics], columns: Sequence[str] = ()) -> str:
    """JSON: an object with a list for each field, each with an entry per record batch.

    ``columns`` are the JSON texts of a typed topic's ``column_statistics``.
    """
    lists = [
        f'"{name}":{json.dumps([block[nth] for block in blocks], separators=(",", ":"))}'
        for nth, name in enumerate(BlockStatistics._fields)
    ]
    if columns:
        lists.append(f'"{COLUMNS_KEY}":[{",".join(columns)}]')
    return f"{{{','.join(lists)}}}"


def parse_statistics(text: str) -> Statistics:
    """CorruptBatch for a text that ``pack_statistics`` cannot have written. Unknown fields are skipped."""
    try:
        fields = json.loads(text)
        lists = [fields[name] for name in BlockStatistics._fields]
        blocks = [BlockStatistics(*row) for row in zip(*lists, strict=True)]
        columns = fields.get(COLUMNS_KEY, [])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptBatch(f"the statistics of an .arrow object cannot be read: {error!r}") from None
    for block in blocks:
        if not all(isinstance(value, int) for value in (*block[:6], block.crc)):
            raise CorruptBatch(f"the statistics of an .arrow object have {block}, which are not all numbers")
    found = parse_columns(columns)
    if found and len(found) != len(blocks):
        raise CorruptBatch(
            f"the statistics of an .arrow are of {len(blocks)} record batches, its columns of {len(found)}"
        )
    return Statistics(blocks, found)
