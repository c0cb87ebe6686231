"""Three walks along the batches of a segment file, none of which decodes records; from cheap to thorough:

- ``outlines`` reads 27 bytes of each batch, enough to find an offset. It serves reads, so it creates no
  object per record, reads small batches by the page and skips the bodies of large ones.
- ``headers`` reads the 61-byte envelopes, enough to rebuild indexes, epochs and producer states.
- ``check`` reads every byte and compares every CRC, for recovery. It stops at the first bytes that are not an
  intact batch with a valid offset and epoch, and reports them; ``log_recovery`` decides what they mean.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import (
    ENVELOPE_BYTES,
    LENGTH_MIN,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
    crc_matches,
    parse_header,
)
from sparklog.storage.disk import File
from sparklog.storage.segments.intact_run import IntactRun, intact_run

OUTLINE: Final = struct.Struct(">qi4xb6xi")
"""Base offset, length, magic and last offset delta, from the front of an envelope."""
assert OUTLINE.size == 27

PAGE_BYTES: Final = 4_096
HEADER_CHUNK_BYTES: Final = 65_536
CHECK_CHUNK_BYTES: Final = 4_194_304


class Outline(NamedTuple):
    """The position of a batch in its file, and the offsets that it spans."""

    position: int
    end_position: int
    base_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """The first position in a file without an intact batch. ``torn``: the file ends inside the batch."""

    position: int
    torn: bool
    reason: str


def outlines(file: File, position: int, end: int) -> Iterator[Outline]:
    """The batches from ``position``, the start of a batch, to ``end``. CorruptBatch at other bytes."""
    chunk, chunk_start, want = b"", position, PAGE_BYTES
    while position < end:
        inside = position - chunk_start
        if inside + OUTLINE.size > len(chunk):
            chunk, chunk_start, inside = file.pread(min(want, end - position), position), position, 0
            if len(chunk) < OUTLINE.size:
                raise CorruptBatch(f"{file.path} has {len(chunk)} bytes at {position}, not a batch")
        base_offset, length, magic, last_delta = OUTLINE.unpack_from(chunk, inside)
        if magic != MAGIC or length < LENGTH_MIN or last_delta < 0:
            raise CorruptBatch(f"{file.path} has no batch at {position}: magic {magic}, length {length}")
        end_position = position + LENGTH_OVERHEAD + length
        yield Outline(position, end_position, base_offset, base_offset + last_delta)
        want = PAGE_BYTES if end_position - position < PAGE_BYTES else ENVELOPE_BYTES
        position = end_position


def headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and envelope of every batch from ``position``, the start of a batch, to ``end``."""
    chunk, chunk_start, want = b"", position, HEADER_CHUNK_BYTES
    while position < end:
        inside = position - chunk_start
        if inside + ENVELOPE_BYTES > len(chunk):
            chunk, chunk_start, inside = file.pread(min(want, end - position), position), position, 0
        header = parse_header(chunk, inside)
        yield position, header
        want = HEADER_CHUNK_BYTES if header.size_bytes < HEADER_CHUNK_BYTES else ENVELOPE_BYTES
        position += header.size_bytes


class Window:
    """A moving piece of a file, so that every batch is read once and into one buffer."""

    __slots__ = ("_buffer", "_end", "_file", "_start")

    def __init__(self, file: File, end: int) -> None:
        self._file = file
        self._end = end
        self._start = 0
        self._buffer = b""

    def load(self, position: int, length: int) -> tuple[bytes, int]:
        """A buffer with ``length`` bytes of the file from ``position`` on, and their position in it."""
        inside = position - self._start
        if inside + length > len(self._buffer):
            want = min(max(length, CHECK_CHUNK_BYTES), self._end - position)
            self._buffer, self._start, inside = self._file.pread(want, position), position, 0
            if len(self._buffer) < length:
                raise OSError(f"{self._file.path} ended at {position + len(self._buffer)} while it was read")
        return self._buffer, inside


def check(
    file: File,
    offset: int,
    visit: Callable[[int, BatchHeader], None],
    visit_run: Callable[[IntactRun], None] | None = None,
    *,
    epoch: int = -1,
) -> Trouble | None:
    """Read all of ``file`` and call ``visit`` with each intact batch; the trouble that stopped it, or None.

    ``offset`` and ``epoch``: the least offset and leader epoch that the first batch may have. From batch to
    batch offsets must grow and epochs must not fall: an earlier epoch after a later one is a batch that was
    truncated, and that a power cut restored. ``visit_run`` gets whole runs of intact batches instead, which
    is many times as fast.
    """
    position, end = 0, file.size()
    window = Window(file, end)
    while position < end:
        room = end - position
        if visit_run is not None:
            run = intact_run(file.pread(min(CHECK_CHUNK_BYTES, room), position), position, offset, epoch)
            if run is not None:
                visit_run(run)
                position, offset, epoch = run.end_position, run.next_offset, max(epoch, run.greatest_epoch)
                continue
        if room < ENVELOPE_BYTES:
            return Trouble(position, True, f"{room} bytes are less than an envelope")
        try:
            header = parse_header(*window.load(position, ENVELOPE_BYTES))
        except CorruptBatch as error:
            return Trouble(position, False, str(error))
        if header.base_offset < offset:
            return Trouble(position, False, f"offset {header.base_offset}, expected {offset} or more")
        if 0 <= header.leader_epoch < epoch:
            return Trouble(position, False, f"leader epoch {header.leader_epoch} after epoch {epoch}")
        if header.size_bytes > room:
            return _cut_short(file, position, end, header)
        if not crc_matches(*window.load(position, header.size_bytes), header):
            return Trouble(
                position, False, f"the batch at offset {header.base_offset} does not match its CRC"
            )
        visit(position, header)
        position += header.size_bytes
        offset, epoch = header.next_offset, max(epoch, header.leader_epoch)
    return None


def _cut_short(file: File, position: int, end: int, header: BatchHeader) -> Trouble:
    """Judge a batch that claims more bytes than the file has: torn, unless its length field is damaged.

    A damaged length field in the middle of a file looks like a torn tail, and cutting it would remove all
    later batches. So search for the next batch: if it exists, the length field is damaged.
    """
    window = Window(file, end)
    wanted = struct.pack(">q", header.next_offset)
    start = position + ENVELOPE_BYTES
    while end - start >= ENVELOPE_BYTES:
        length = min(CHECK_CHUNK_BYTES, end - start)
        buffer, inside = window.load(start, length)
        found = buffer.find(wanted, inside, inside + length)
        if found < 0:
            start += max(1, length - len(wanted) + 1)
            continue
        candidate = start + found - inside
        if _is_intact(window, candidate, end):
            return Trouble(position, False, f"length {header.length} reaches past the batch at {candidate}")
        start = candidate + 1
    have = end - position
    return Trouble(position, True, f"{have} of the {header.size_bytes} bytes of offset {header.base_offset}")


def _is_intact(window: Window, position: int, end: int) -> bool:
    if end - position < ENVELOPE_BYTES:
        return False
    try:
        header = parse_header(*window.load(position, ENVELOPE_BYTES))
    except CorruptBatch:
        return False
    if header.size_bytes > end - position:
        return False
    return crc_matches(*window.load(position, header.size_bytes), header)
