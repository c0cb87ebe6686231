"""Walking a segment file that may be damaged anywhere: every batch, and every stretch that is none.

Recovery (``scan.check``) stops at the first trouble, because it must decide. Here nothing is decided, so the
walk goes on: a batch with a wrong CRC is shown and marked; bytes that are no batch are skipped up to the next
batch whose CRC holds. A length that was damaged leads into the middle of another batch; when an intact batch
stands within what a bad one claims, the walk goes on there.

The file may belong to a living broker. A last batch that is not all there yet is waited for no longer than it
takes to look at the size once more; what is appended after the walk began is otherwise left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from crc32c import crc32c

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import (
    ATTRIBUTES_POSITION,
    ENVELOPE,
    ENVELOPE_BYTES,
    LENGTH_MIN,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    crc_matches,
    parse_header,
)
from sparklog.storage.inspection.inspect_file import InspectedFile, Unreadable

WINDOW_BYTES: Final = 4 * 1024 * 1024
BATCH_BYTES_MAX: Final = 128 * 1024 * 1024
"""The largest batch that is taken into memory as a whole; brokers read no larger frame."""

OFFSET_MAX: Final = 2**63 - 1

_LENGTH_TOP_BYTE: Final = 8
_LENGTH_TOP_MAX: Final = BATCH_BYTES_MAX >> 24


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """A batch, at ``position``. ``crc_holds`` False: its bytes are not what was once written."""

    position: int
    header: BatchHeader
    crc_holds: bool
    offset_min: int
    """The least base offset that it may have where it stands."""


@dataclass(frozen=True, slots=True)
class Damage:
    """``length`` bytes from ``position`` on that are no batch. ``is_tail``: nothing intact follows."""

    position: int
    length: int
    is_tail: bool
    reason: str


class LogWalk:
    """One walk along one segment file."""

    __slots__ = ("_buffer", "_end", "_file", "_is_limited", "_start")

    def __init__(self, file: InspectedFile, bytes_max: int | None = None) -> None:
        """``bytes_max``: look at no more than that many bytes; a batch that it cuts is left out."""
        self._file = file
        size = file.size()
        self._is_limited = bytes_max is not None and bytes_max < size
        self._end = size if bytes_max is None else min(size, bytes_max)
        self._buffer = b""
        self._start = 0

    def batches(self, offset_min: int) -> Iterator[FoundBatch | Damage]:
        """Everything in the file, in order. Unreadable if it shrinks meanwhile."""
        position = 0
        while position < self._end:
            header, reason = self._header_at(position)
            room = self._end - position
            if header is None or header.size_bytes > room:
                wanted = ENVELOPE_BYTES if header is None else header.size_bytes
                if self._has_grown(position, wanted):
                    continue
                if self._is_limited and wanted > room:
                    return
                yield (damage := self._damage(position, reason, offset_min))
                position += damage.length
                continue
            found = FoundBatch(position, header, self._crc_holds(position, header), offset_min)
            yield found
            if found.crc_holds:
                offset_min = max(offset_min, header.next_offset)
                position += header.size_bytes
                continue
            inside = self._intact_within(found, offset_min)
            if inside is None:
                position += header.size_bytes
                continue
            reason = f"length {header.length} reaches past the intact batch at {inside}"
            yield Damage(position, inside - position, False, reason)
            position = inside

    def batch_bytes(self, found: FoundBatch) -> memoryview | None:
        """The whole batch, until the walk goes on; None if it claims more than is taken into memory."""
        size = found.header.size_bytes
        if size > BATCH_BYTES_MAX:
            return None
        buffer, inside = self._load(found.position, size)
        return memoryview(buffer)[inside : inside + size]

    def _header_at(self, position: int) -> tuple[BatchHeader | None, str]:
        room = self._end - position
        if room < ENVELOPE_BYTES:
            return None, f"{room} bytes are less than an envelope's {ENVELOPE_BYTES}"
        data = self._read(position, ENVELOPE_BYTES)
        header = parse_header_or_none(data, 0)
        if header is None:
            return None, _why_no_header(data)
        reason = f"{room} of the {header.size_bytes} bytes of the batch at offset {header.base_offset}"
        return header, reason

    def _has_grown(self, position: int, wanted: int) -> bool:
        """Whether the owner has meanwhile written the rest of what stood at the end."""
        if self._is_limited or wanted <= self._end - position or self._file.size() < position + wanted:
            return False
        self._end = position + wanted
        return True

    def _damage(self, position: int, reason: str, offset_min: int) -> Damage:
        found = self._next_intact(position + 1, self._end, offset_min)
        end = self._end if found is None else found
        return Damage(position, end - position, found is None, reason)

    def _intact_within(self, found: FoundBatch, offset_min: int) -> int | None:
        """Where an intact batch begins within a bad one, so that the bad one's length must be wrong.

        If a batch or the end follows properly, it must be the very batch that is due: records may hold
        batches as their values.
        """
        header = found.header
        end = found.position + header.size_bytes
        after = self._header_at(end)[0]
        if end == self._end or (after is not None and after.base_offset >= offset_min):
            return self._next_intact(found.position + 1, end, header.next_offset, header.next_offset)
        return self._next_intact(found.position + 1, end, offset_min)

    def _next_intact(
        self, start: int, begins_before: int, offset_min: int, offset_max: int = OFFSET_MAX
    ) -> int | None:
        """Where the next batch begins whose CRC holds, at ``start`` or later, with an offset in between."""
        while start < begins_before and self._end - start >= ENVELOPE_BYTES:
            buffer = self._read(start, min(WINDOW_BYTES, self._end - start))
            for nth in _candidates(buffer):
                position = start + int(nth)
                if position >= begins_before:
                    return None
                header = parse_header_or_none(buffer, int(nth))
                if header is None or not offset_min <= header.base_offset <= offset_max:
                    continue
                if self._is_intact(position, header):
                    return position
            start += len(buffer) - ENVELOPE_BYTES + 1
        return None

    def _is_intact(self, position: int, header: BatchHeader) -> bool:
        return (
            header.size_bytes <= self._end - position
            and header.record_count <= header.last_offset_delta + 1
            and self._crc_holds(position, header)
        )

    def _crc_holds(self, position: int, header: BatchHeader) -> bool:
        if header.size_bytes <= WINDOW_BYTES:
            return crc_matches(*self._load(position, header.size_bytes), header)
        crc, at, end = 0, position + ATTRIBUTES_POSITION, position + header.size_bytes
        while at < end:
            piece = self._file.read_fully(min(WINDOW_BYTES, end - at), at)
            crc = crc32c(piece, crc)
            at += len(piece)
        return crc == header.crc

    def _read(self, position: int, length: int) -> bytes:
        buffer, inside = self._load(position, length)
        return buffer[inside : inside + length]

    def _load(self, position: int, length: int) -> tuple[bytes, int]:
        """A buffer with these bytes, and where in it they begin; one window is kept."""
        inside = position - self._start
        if inside < 0 or inside + length > len(self._buffer):
            self._buffer = b""
            self._buffer = self._file.pread(min(max(length, WINDOW_BYTES), self._end - position), position)
            self._start, inside = position, 0
            if len(self._buffer) < length:
                raise Unreadable(f"it ended at {position + len(self._buffer)} while it was read")
        return self._buffer, inside


def header_at(file: InspectedFile, position: int) -> BatchHeader:
    """The envelope at ``position``; CorruptBatch, which does not name the place, if there is none."""
    data = file.pread(ENVELOPE_BYTES, position)
    header = parse_header_or_none(data, 0)
    if header is None:
        raise CorruptBatch(_why_no_header(data))
    return header


def parse_header_or_none(buffer: bytes, position: int) -> BatchHeader | None:
    try:
        return parse_header(buffer, position)
    except CorruptBatch:
        return None


def _why_no_header(data: bytes) -> str:
    """In words that do not speak of the place, which whoever asked knows better."""
    if len(data) < ENVELOPE_BYTES:
        return f"{len(data)} bytes are less than an envelope's {ENVELOPE_BYTES}"
    base_offset, length, _, magic, *_, last_delta, _, _, _, _, _, count = ENVELOPE.unpack(data)
    if magic != MAGIC or length < LENGTH_MIN:
        return f"magic {magic}, length {length}"
    return f"base offset {base_offset}, last offset delta {last_delta}, record count {count}"


def _candidates(buffer: bytes) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
    """Where an envelope could begin: the magic in its place, offset and length of a sensible size."""
    octets = np.frombuffer(buffer, np.uint8)
    count = len(octets) - ENVELOPE_BYTES + 1
    fits = octets[MAGIC_POSITION : MAGIC_POSITION + count] == MAGIC
    fits &= octets[:count] == 0
    fits &= octets[_LENGTH_TOP_BYTE : _LENGTH_TOP_BYTE + count] <= _LENGTH_TOP_MAX
    return np.flatnonzero(fits)
