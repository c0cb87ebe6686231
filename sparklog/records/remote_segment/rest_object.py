"""The ``.rest`` object: with ``.arrow`` beside it, every batch of the segment, byte for byte.

    head, 32 bytes | parts | index: an entry per batch | trailer, 80 bytes

A part is a whole batch, or of an arrow batch that is in ``.arrow`` what stands before its body: envelope, our
header, Arrow metadata. The trailer names the ``.arrow`` that belongs to it by id, size and CRC. All numbers
are little-endian.
"""

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from crc32c import crc32c

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import BatchHeader, crc_matches, parse_header
from sparklog.records.remote_segment.arrow_object import ArrowObject, Read
from sparklog.records.remote_segment.identity import VERSION, check_version

MAGIC: Final = b"SPKLREST"
HEAD: Final = struct.Struct("<8sHHI16s")
ENTRY: Final = struct.Struct("<qiBxxxqQIIQIi")
TRAILER: Final = struct.Struct("<16sQIIQIIIHH12xI8s")
"""Segment id, index position, count of entries, CRC of the index, size of the .arrow, CRC of its footer, CRC
of the head, flags, version, length of an entry, CRC of the trailer up to here, magic."""
assert (HEAD.size, ENTRY.size, TRAILER.size) == (32, 56, 80)

RAW_FLAG: Final = 1
"""There is no ``.arrow``: all batches are whole."""

_TRAILER_CRC_AT: Final = TRAILER.size - 12
_INDEX_BYTES_MAX: Final = 256 * 1024 * 1024


class StoredIn(IntEnum):
    """Where a batch's bytes are."""

    WHOLE = 0
    SPLIT = 1


class Entry(NamedTuple):
    """One batch: in the order of offsets, which grow."""

    base_offset: int
    last_offset_delta: int
    place: int
    """A ``StoredIn``, by its number."""
    max_timestamp_ms: int
    position: int
    length: int
    crc: int
    body_position: int
    """In ``.arrow``; 0 for a whole batch."""
    body_length: int
    leader_epoch: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta


@dataclass(frozen=True, slots=True)
class Trailer:
    segment_id: str
    index_position: int
    entry_count: int
    index_crc: int
    arrow_size: int
    arrow_footer_crc: int
    head_crc: int
    is_raw: bool
    entry_length: int

    @property
    def index_length(self) -> int:
        return self.entry_count * self.entry_length


def head_bytes(segment_id: str, *, is_raw: bool) -> bytes:
    return HEAD.pack(MAGIC, VERSION, RAW_FLAG if is_raw else 0, 0, bytes.fromhex(segment_id))


def entry_of(header: BatchHeader, part: bytes, position: int, body: tuple[int, int] | None) -> Entry:
    """The entry of a batch whose part lies at ``position``. ``body``: position and length in ``.arrow``."""
    return Entry(
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        place=StoredIn.WHOLE if body is None else StoredIn.SPLIT,
        max_timestamp_ms=header.max_timestamp_ms,
        position=position,
        length=len(part),
        crc=crc32c(part),
        body_position=0 if body is None else body[0],
        body_length=0 if body is None else body[1],
        leader_epoch=header.leader_epoch,
    )


def end_bytes(
    segment_id: str,
    entries: Sequence[Entry],
    position: int,
    *,
    arrow_size: int,
    arrow_footer_crc: int,
    is_raw: bool,
) -> bytes:
    """Index and trailer of an object whose parts end at ``position``."""
    index = b"".join(ENTRY.pack(*entry) for entry in entries)
    trailer = TRAILER.pack(
        bytes.fromhex(segment_id),
        position,
        len(entries),
        crc32c(index),
        arrow_size,
        arrow_footer_crc,
        crc32c(head_bytes(segment_id, is_raw=is_raw)),
        RAW_FLAG if is_raw else 0,
        VERSION,
        ENTRY.size,
        0,
        MAGIC,
    )
    crc = crc32c(trailer[:_TRAILER_CRC_AT])
    return index + trailer[:_TRAILER_CRC_AT] + struct.pack("<I", crc) + MAGIC


def parse_trailer(trailer: bytes, size: int) -> Trailer:
    """The last 80 bytes of an object of ``size`` bytes; CorruptBatch if they are not a trailer of it."""
    if len(trailer) != TRAILER.size:
        raise CorruptBatch(f"{size} bytes are no .rest object")
    (
        segment_id, index_position, entry_count, index_crc, arrow_size, arrow_footer_crc, head_crc, flags,
        version, entry_length, crc, magic,
    ) = TRAILER.unpack(trailer)  # fmt: skip
    if magic != MAGIC:
        raise CorruptBatch(f"an object of {size} bytes ends with {magic!r}: it is cut, or no .rest object")
    check_version(version, ".rest")
    if crc32c(trailer[:_TRAILER_CRC_AT]) != crc:
        raise CorruptBatch(f"the CRC {crc:#010x} of a .rest object's trailer does not match")
    parsed = Trailer(
        segment_id.hex(), index_position, entry_count, index_crc, arrow_size, arrow_footer_crc, head_crc,
        bool(flags & RAW_FLAG), entry_length,
    )  # fmt: skip
    ends = index_position + parsed.index_length + TRAILER.size
    if (
        flags & ~RAW_FLAG
        or entry_length < ENTRY.size
        or ends != size
        or parsed.index_length > _INDEX_BYTES_MAX
    ):
        raise CorruptBatch(f"a .rest object of {size} bytes says that it has {ends}: it is cut or damaged")
    return parsed


def parse_index(trailer: Trailer, index: bytes) -> list[Entry]:
    """The entries; CorruptBatch unless their CRC holds and their parts follow each other."""
    if len(index) != trailer.index_length or crc32c(index) != trailer.index_crc:
        raise CorruptBatch(f"the CRC {trailer.index_crc:#010x} of a .rest object's index does not match")
    entries = [Entry(*ENTRY.unpack_from(index, at)) for at in range(0, len(index), trailer.entry_length)]
    position, offset = HEAD.size, -1
    for entry in entries:
        if entry.position != position or entry.base_offset <= offset or entry.place not in (0, 1):
            raise CorruptBatch(f"a .rest object's index has {entry} behind offset {offset}")
        position, offset = position + entry.length, entry.last_offset
    if position != trailer.index_position:
        raise CorruptBatch(f"the parts of a .rest object end at {position}, not at {trailer.index_position}")
    return entries


def open_rest_object(read: Read, size: int) -> tuple[Trailer, list[Entry]]:
    """Trailer and index of an object of ``size`` bytes."""
    trailer = parse_trailer(read(max(0, size - TRAILER.size), min(size, TRAILER.size)), size)
    return trailer, parse_index(trailer, read(trailer.index_position, trailer.index_length))


def check_pair(trailer: Trailer, arrow: ArrowObject) -> None:
    """CorruptBatch unless the two objects were written as one segment."""
    ours = (trailer.segment_id, trailer.arrow_size, trailer.arrow_footer_crc)
    theirs = (arrow.identity.segment_id, arrow.size, arrow.footer_crc)
    if ours != theirs:
        raise CorruptBatch(
            f"a .rest object of segment {ours[0]} belongs to an .arrow of {ours[1]} bytes; the one beside it "
            f"is of segment {theirs[0]}, with {theirs[1]} bytes"
        )


def nth_with(entries: Sequence[Entry], offset: int) -> int:
    """The index of the first batch that has ``offset`` or a later one."""
    return bisect_left(entries, offset, key=lambda entry: entry.last_offset)


def read_part(entry: Entry, read_rest: Read) -> bytes:
    """What ``.rest`` has of a batch; CorruptBatch if it is damaged."""
    part = read_rest(entry.position, entry.length)
    if crc32c(part) != entry.crc:
        raise CorruptBatch(
            f"the CRC {entry.crc:#010x} of the part of offset {entry.base_offset} does not match"
        )
    return part


def rebuild(entry: Entry, read_rest: Read, read_arrow: Read) -> bytes:
    """The batch, byte for byte as it was in the log; CorruptBatch if anything of it is damaged."""
    batch = read_part(entry, read_rest)
    if entry.place == StoredIn.SPLIT:
        batch += read_arrow(entry.body_position, entry.body_length)
    header = parse_header(batch)
    said = (entry.base_offset, entry.last_offset_delta, entry.leader_epoch, entry.max_timestamp_ms)
    found = (header.base_offset, header.last_offset_delta, header.leader_epoch, header.max_timestamp_ms)
    if said != found or header.size_bytes != len(batch) or not crc_matches(batch, 0, header):
        raise CorruptBatch(
            f"the batch at offset {entry.base_offset} is not the one that was written: {found}"
        )
    return batch


def check_rest_object(
    read: Read, trailer: Trailer, entries: Sequence[Entry], rebuilt: Callable[[Entry], bytes]
) -> Iterator[tuple[int, CorruptBatch]]:
    """Every part whose bytes are not those that were written: its position, and what is wrong."""
    head = read(0, HEAD.size)
    if crc32c(head) != trailer.head_crc or head != head_bytes(trailer.segment_id, is_raw=trailer.is_raw):
        yield 0, CorruptBatch("the head of a .rest object is not the one that was written")
    for entry in entries:
        try:
            rebuilt(entry)
        except CorruptBatch as error:
            yield entry.position, error
