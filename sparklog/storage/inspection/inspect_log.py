"""Walking a segment file that may be damaged anywhere: every batch, and every range that is not a batch.

Recovery (``scan.check``) stops at the first trouble, but this walk continues. A batch with a wrong CRC is
returned and marked. Bytes that are not a batch are skipped up to the next batch with a matching CRC. A
damaged length field points into the middle of another batch; if an intact batch begins inside the bad batch's
claimed length, the walk continues there.

A running broker may be writing to the file. If the last batch is incomplete, the walk checks the file's size
once more; other appends after the start of the walk are left out.
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
"""The largest batch that is read into memory as a whole; brokers accept no larger frame."""

OFFSET_MAX: Final = 2**63 - 1

_LENGTH_TOP_BYTE: Final = 8
_LENGTH_TOP_MAX: Final = BATCH_BYTES_MAX >> 24


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """A batch, at ``position``. ``crc_holds`` False: the bytes have changed since they were written."""

    position: int
    header: BatchHeader
    crc_holds: bool
    offset_min: int
    """The least base offset that a batch may have at this position."""


@dataclass(frozen=True, slots=True)
class Damage:
    """``length`` bytes from ``position`` on that are not a batch. ``is_tail``: no intact batch follows."""

    position: int
    length: int
    is_tail: bool
    reason: str


class LogWalk:
    """One walk along one segment file."""

    __slots__ = ("_buffer", "_end", "_file", "_is_limited", "_start")

    def __init__(self, file: InspectedFile, bytes_max: int | None = None) -> None:
        """``bytes_max``: read at most that many bytes, and leave out a batch that they would cut."""
        self._file = file
        size = file.size()
        self._is_limited = bytes_max is not None and bytes_max < size
        self._end = size if bytes_max is None else min(size, bytes_max)
        self._buffer = b""
        self._start = 0

    def batches(self, offset_min: int) -> Iterator[FoundBatch | Damage]:
        """The content of the file, in order. Unreadable if the file shrinks meanwhile."""
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
        """The whole batch, valid until the walk continues; None if it exceeds ``BATCH_BYTES_MAX``."""
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
        """Whether the broker has meanwhile written the rest of the last batch."""
        if self._is_limited or wanted <= self._end - position or self._file.size() < position + wanted:
            return False
        self._end = position + wanted
        return True

    def _damage(self, position: int, reason: str, offset_min: int) -> Damage:
        found = self._next_intact(position + 1, self._end, offset_min)
        end = self._end if found is None else found
        return Damage(position, end - position, found is None, reason)

    def _intact_within(self, found: FoundBatch, offset_min: int) -> int | None:
        """The position of an intact batch inside a bad batch, which proves that the bad length is wrong.

        If a batch or the end of the file follows the bad batch, the inner batch must have the very next
        offset, because record values may contain batches.
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
        """The position of the next batch with a matching CRC and an offset in the given range."""
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
        """A buffer with these bytes, and their position in it; one window is kept."""
        inside = position - self._start
        if inside < 0 or inside + length > len(self._buffer):
            self._buffer = b""
            self._buffer = self._file.pread(min(max(length, WINDOW_BYTES), self._end - position), position)
            self._start, inside = position, 0
            if len(self._buffer) < length:
                raise Unreadable(f"it ended at {position + len(self._buffer)} while it was read")
        return self._buffer, inside


def header_at(file: InspectedFile, position: int) -> BatchHeader:
    """The envelope at ``position``; CorruptBatch, whose text lacks the position, if there is no envelope."""
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
    """Why ``data`` is not an envelope; the caller adds the position."""
    if len(data) < ENVELOPE_BYTES:
        return f"{len(data)} bytes are less than an envelope's {ENVELOPE_BYTES}"
    base_offset, length, _, magic, *_, last_delta, _, _, _, _, _, count = ENVELOPE.unpack(data)
    if magic != MAGIC or length < LENGTH_MIN:
        return f"magic {magic}, length {length}"
    return f"base offset {base_offset}, last offset delta {last_delta}, record count {count}"


def _candidates(buffer: bytes) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
    """Positions where an envelope could begin: right magic, plausible offset and length."""
    octets = np.frombuffer(buffer, np.uint8)
    count = len(octets) - ENVELOPE_BYTES + 1
    fits = octets[MAGIC_POSITION : MAGIC_POSITION + count] == MAGIC
    fits &= octets[:count] == 0
    fits &= octets[_LENGTH_TOP_BYTE : _LENGTH_TOP_BYTE + count] <= _LENGTH_TOP_MAX
    return np.flatnonzero(fits)
