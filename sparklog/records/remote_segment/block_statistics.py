"""What the footer of an ``.arrow`` object says of each of its record batches.

Bounds are of rows, so that a reader can skip a record batch: offsets and timestamps exactly; keys by their
first bytes, as text in hex. A greatest key that is longer than that has no bound, since its beginning is less
than it.
"""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from sparklog.model.errors import CorruptBatch

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


def pack_statistics(blocks: Sequence[BlockStatistics]) -> str:
    """JSON: an object with a list for each field, each with an entry per record batch."""
    return json.dumps(
        {name: [block[nth] for block in blocks] for nth, name in enumerate(BlockStatistics._fields)},
        separators=(",", ":"),
    )


def parse_statistics(text: str) -> list[BlockStatistics]:
    """CorruptBatch for a text that ``pack_statistics`` cannot have written. Unknown fields are skipped."""
    try:
        fields = json.loads(text)
        columns = [fields[name] for name in BlockStatistics._fields]
        blocks = [BlockStatistics(*row) for row in zip(*columns, strict=True)]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptBatch(f"the statistics of an .arrow object cannot be read: {error!r}") from None
    for block in blocks:
        if not all(isinstance(value, int) for value in (*block[:6], block.crc)):
            raise CorruptBatch(f"the statistics of an .arrow object have {block}, which are not all numbers")
    return blocks
