"""The ``.arrow`` object: an Arrow IPC file of the rows that count, for pandas, Polars, DuckDB and Spark.

    "ARROW1", 2 zeros | schema message | record-batch messages | end of stream
    | footer | length of the footer | "ARROW1"

The footer's metadata has three texts: ``sparklog.segment`` (whose rows these are), ``sparklog.statistics``
(a list for each bound, with CRCs) and ``sparklog.crc`` (of the footer itself, with zeros in that place).
Together they cover every byte, so ``check_arrow_object`` finds any bit that flipped.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from sparklog.model.errors import CorruptBatch
from sparklog.records.remote_segment.block_statistics import BlockStatistics, parse_statistics
from sparklog.records.remote_segment.column_statistics import ColumnStatistics
from sparklog.records.remote_segment.identity import SegmentIdentity, parse_identity
from sparklog.records.remote_segment.ipc_file import (
    END_OF_STREAM,
    HEAD,
    MAGIC,
    TAIL,
    Block,
    parse_footer,
)

SEGMENT_KEY: Final = "sparklog.segment"
STATISTICS_KEY: Final = "sparklog.statistics"
CRC_KEY: Final = "sparklog.crc"
FOOTER_BYTES_MAX: Final = 64 * 1024 * 1024
"""About 500,000 record batches."""

CRC_ZEROS: Final = "0" * 8
CRC_PLACE: Final = slice(-12, -4)
"""In a footer: its last text is the CRC, and ends with four zeros."""

Read = Callable[[int, int], bytes]
"""Gives exactly the bytes at (position, length), or raises."""


@dataclass(frozen=True, slots=True)
class ArrowObject:
    """What an ``.arrow`` object's footer says."""

    identity: SegmentIdentity
    blocks: tuple[Block, ...]
    statistics: list[BlockStatistics]
    columns: list[ColumnStatistics | None]
    """An entry per record batch of a typed topic; otherwise empty."""
    footer_crc: int
    head_crc: int
    size: int
    footer_length: int


def open_arrow_object(read: Read, size: int) -> ArrowObject:
    """The footer of an object of ``size`` bytes, checked; CorruptBatch if it is not whole.

    The size is what a manifest says, and is not asked of a store.
    """
    if size < len(HEAD) + len(END_OF_STREAM) + TAIL.size:
        raise CorruptBatch(f"{size} bytes are no .arrow object")
    length, magic = TAIL.unpack(read(size - TAIL.size, TAIL.size))
    start = size - TAIL.size - length
    if magic != MAGIC or not 0 < length <= FOOTER_BYTES_MAX or start < len(HEAD) + len(END_OF_STREAM):
        raise CorruptBatch(
            f"an .arrow object of {size} bytes ends with {length}, {magic!r}: it is cut or foreign"
        )
    footer = bytearray(read(start, length))
    said = bytes(footer[CRC_PLACE])
    footer[CRC_PLACE] = CRC_ZEROS.encode()
    crc = crc32c(footer)
    if said != f"{crc:08x}".encode():
        raise CorruptBatch(f"the CRC {said!r} of an .arrow object's footer does not match")
    parsed = parse_footer(footer)
    try:
        identity, head_crc = parse_identity(parsed.metadata[SEGMENT_KEY])
        statistics = parse_statistics(parsed.metadata[STATISTICS_KEY])
    except KeyError as error:
        raise CorruptBatch(
            f"an Arrow file without {error} in its footer is no .arrow object of ours"
        ) from None
    blocks = statistics.blocks
    if len(blocks) != len(parsed.blocks):
        raise CorruptBatch(
            f"an .arrow object has {len(parsed.blocks)} record batches, {len(blocks)} in its statistics"
        )
    opened = ArrowObject(identity, parsed.blocks, blocks, statistics.columns, crc, head_crc, size, length)
    _check_places(opened, start - len(END_OF_STREAM))
    return opened


def _check_places(opened: ArrowObject, end: int) -> None:
    """CorruptBatch unless the record batches follow each other, from the schema to the end of the stream."""
    reached = opened.blocks[0].offset if opened.blocks else end
    for block in opened.blocks:
        if block.offset != reached or min(block.metadata_length, block.body_length) < 0:
            raise CorruptBatch(
                f"a record batch begins at {block.offset} of an .arrow object, not at {reached}"
            )
        reached = block.end
    if reached != end:
        raise CorruptBatch(f"record batches end at {reached} of an .arrow object, not at {end}")


def check_arrow_object(read: Read, opened: ArrowObject) -> Iterator[tuple[int, CorruptBatch]]:
    """Every part whose bytes are not those that were written: its position, and what is wrong."""
    end = opened.size - TAIL.size - opened.footer_length - len(END_OF_STREAM)
    head_end = opened.blocks[0].offset if opened.blocks else end
    if crc32c(read(0, head_end)) != opened.head_crc:
        yield 0, CorruptBatch("the CRC of the schema does not match")
    for block, statistics in zip(opened.blocks, opened.statistics, strict=True):
        crc, position = 0, block.offset
        while position < block.end:
            length = min(block.end - position, 1 << 20)
            crc = crc32c(read(position, length), crc)
            position += length
        if crc != statistics.crc:
            yield (
                block.offset,
                CorruptBatch(
                    f"the CRC {statistics.crc:#010x} of offsets {statistics.first_offset} to "
                    f"{statistics.last_offset} does not match"
                ),
            )
    if read(end, len(END_OF_STREAM)) != END_OF_STREAM:
        yield end, CorruptBatch("the end of the stream is not where it must be")
