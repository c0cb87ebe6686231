"""What a simulated file holds, and what befalls its bytes: a power cut, a failed fsync, rot.

A power cut decides for every file that was written since its last sync whether the writes are kept, lost,
torn at some byte, or kept here and lost there, sector by sector or page by page: a later page may be on the
disk and an earlier one be zeros; so may the file's end, if its size was written and its bytes were not. Of a
file that became shorter the bytes that were cut may be there again, or the truncation alone: not what was
appended behind it. What an fsync that failed should have saved is cut off, or zeros, once nobody has it in
memory any more.

Dice decide what is left, or what somebody found decides, who asks whether it could be left: by the same code.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import ENVELOPE_BYTES, BatchHeader, split
from sparklog.storage.disk import Buffer

PAGES: Final = (512, 4_096)
"""What a power cut leaves whole: a sector, or a page of the cache."""

ROT_IN_ENVELOPE: Final = (*range(21, 23), *range(27, 43), *range(57, 61))
"""Attributes, timestamps, the count of records."""
SIGNS: Final = (23, 57)
"""Where the signs are of the last offset delta and the count of records."""
ENVELOPES_ROT: Final = 0.3
"""A larger share than theirs of the bytes: payloads have other checks than the CRC."""


class Decides(Protocol):
    """Who says what a power cut leaves of a file that was written since its last sync."""

    def page(self, position: int, contents: Sequence[bytes], least: int) -> bytes:
        """One of these contents that the page had, or the beginning of one, of ``least`` bytes or more. The
        first one was synced, the others are from the newest back."""
        ...

    def size(self, least: int, most: int) -> int:
        """How long the file is."""
        ...


class Inode:
    """A file's bytes, whatever its name."""

    __slots__ = ("_earlier", "_shortest", "data", "synced")

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced: bytes | None = b""
        """None while nothing was written since the last sync."""
        self._shortest = 0
        """The file's least size since then: nothing below was changed."""
        self._earlier: list[bytes] = []
        """What it held since then, before some of it was cut or written over."""

    def write(self, position: int, data: Buffer) -> None:
        """Nothing, written behind the end, does not move the end."""
        if not data:
            return
        self._about_to_change()
        self._take_from(position)
        self._fill_up_to(position)
        self.data[position : position + len(data)] = data

    def truncate(self, size: int) -> None:
        self._about_to_change()
        self._take_from(size)
        del self.data[size:]
        self._fill_up_to(size)

    def _take_from(self, position: int) -> None:
        """What is behind this is cut, or written over."""
        if position < len(self.data):
            if bytes(self.data) != self.synced:
                self._earlier.append(bytes(self.data))
            self._shortest = min(self._shortest, position)

    def _about_to_change(self) -> None:
        if self.synced is None:
            self.synced, self._shortest = bytes(self.data), len(self.data)

    def _fill_up_to(self, size: int) -> None:
        """What lies between a file's end and what is written behind it reads as zeros."""
        if (gap := size - len(self.data)) > 0:
            self.data += bytes(gap)

    def sync(self) -> None:
        self.synced = None
        self._earlier.clear()

    @property
    def safe_bytes(self) -> bytes:
        """The beginning that no power cut could change."""
        return bytes(self.data) if self.synced is None else self.synced[: self._shortest]

    @property
    def is_safe(self) -> bool:
        """Whether no power cut could change what it holds, but by what is written behind that."""
        return self.synced is None or self._shortest >= len(self.data)

    # ---- a power cut ---------------------------------------------------------------------------------------

    def lose(self, left: bytearray) -> bool:
        """Only that is left; whether it has parts of what was written, and a gap before the last of them."""
        synced, written, self.data = self.synced, self.data, left
        self.sync()
        return synced is not None and len(left) > len(synced) and left != written[: len(left)]

    def draw_left(self, draw: random.Random) -> bytearray:
        if self.synced is None:
            return self.data
        if draw.random() < 0.2:
            return bytearray(self.synced)
        dice = _Dice(draw, len(self.synced), len(self._earlier))
        return self._left(draw.choice(PAGES), dice)

    def could_be_left(self, found: bytes) -> bool:
        """Whether a power cut could leave these bytes."""
        if self.synced is None:
            return found == self.data
        return found == self.synced or any(self._left(page, _Observer(found)) == found for page in PAGES)

    def _left(self, page_bytes: int, decides: Decides) -> bytearray:
        """Each page is as it was synced, or as it was when it was written to the disk at some time since
        then, with zeros behind the end that the file had, whatever became of the others. The file's size is
        another matter.
        """
        assert self.synced is not None
        contents = [self.synced, bytes(self.data), *reversed(self._earlier)]
        most = max(map(len, contents))
        left = bytearray(self.synced[: self._shortest])
        for at in range(self._shortest // page_bytes * page_bytes, most, page_bytes):
            pages = [content[at : at + page_bytes] for content in contents]
            page = decides.page(at, pages, max(0, self._shortest - at))
            left[at:] = page + bytes(page_bytes - len(page))
        size = decides.size(self._shortest, most)
        assert self._shortest <= size <= most
        left += bytes(max(0, size - len(left)))
        del left[size:]
        return left


def _shared(one: Buffer, other: Buffer) -> int:
    """With how many bytes both begin."""
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


class _Dice:
    """What was written is there, torn at some byte, or there in pieces: mostly what was written last."""

    def __init__(self, draw: random.Random, synced: int, earlier: int) -> None:
        self._draw = draw
        self._fate = draw.choice(("kept", "torn", "in pieces", "in pieces"))
        self._share = draw.choice((0.3, 0.7)) if self._fate == "in pieces" else 1.0
        self._is_cut = self._fate != "in pieces" or draw.random() < 0.5
        self._which = 1 + (draw.randint(0, earlier) if draw.random() < 0.2 else 0)
        self._end = 0 if self._is_cut else synced
        """Where the pages that are there end."""

    def page(self, position: int, contents: Sequence[bytes], least: int) -> bytes:
        draw = self._draw
        if draw.random() >= self._share:
            return contents[0][:least] if self._is_cut else contents[0]
        is_odd = self._fate == "in pieces" and draw.random() < 0.2
        page = draw.choice(contents) if is_odd else contents[self._which]
        if len(page) > least:
            self._end = max(self._end, position + len(page))
        return page[: draw.randint(least, len(page))] if is_odd else page

    def size(self, least: int, most: int) -> int:
        own = max(least, self._end)
        if self._fate == "kept":
            return own
        return self._draw.choice((own, self._draw.randint(least, own if self._fate == "torn" else most)))


class _Observer:
    """What was found decides."""

    def __init__(self, found: bytes) -> None:
        self._found = found

    def page(self, position: int, contents: Sequence[bytes], least: int) -> bytes:
        """The beginning of a page behind which nothing was found but zeros, or the file's end."""
        rest = self._found[position:]
        for page in contents:
            count = max(least, _shared(page, rest))
            if not rest[count : max(map(len, contents))].strip(b"\0"):
                return page[:count]
        return contents[0]

    def size(self, least: int, most: int) -> int:
        return min(max(len(self._found), least), most)


@dataclass(frozen=True, slots=True)
class Doomed:
    """What a failed fsync should have saved: bytes of ``inode``, which was at ``path``, up to ``end``."""

    path: str
    inode: Inode
    start: int
    end: int

    @classmethod
    def now(cls, path: str, inode: Inode) -> "Doomed":
        saved = inode.data if inode.synced is None else inode.synced
        start = _shared(saved, inode.data)
        return cls(path, inode, start, len(inode.data))

    def lose(self, draw: random.Random) -> None:
        """The kernel gave up on these pages: what comes from the disk has zeros there, or ends before."""
        data = self.inode.data
        end = min(self.end, len(data))
        if end == len(data) and draw.random() < 0.5:
            del data[self.start :]
        else:
            data[self.start : end] = bytes(max(0, end - self.start))


@dataclass(frozen=True, slots=True)
class Rot:
    """A batch that rotted under its broker, and how it was before."""

    path: str
    inode: Inode
    position: int
    before: bytes
    after: bytes

    @property
    def is_there(self) -> bool:
        return self.inode.data[self.position : self.position + len(self.after)] == self.after

    def scrub(self) -> bool:
        """Make it as it was, if it is still there; whether its owner had done so before."""
        end = self.position + len(self.after)
        now = self.inode.data[self.position : end]
        if now == self.after:
            self.inode.data[self.position : end] = self.before
        return now == self.before


def batches_of(inode: Inode) -> list[tuple[int, BatchHeader]]:
    """Those of a log; none of one that is damaged already."""
    try:
        return split(bytes(inode.data))
    except CorruptBatch:
        return []


def bit_that_rots(draw: random.Random, at: int) -> int:
    """Of the byte at ``at`` of a batch. Not a sign that makes it no batch at all: below a recovery point no
    start reads it, and the witness, who reads everything, could not.
    """
    bit = draw.randrange(8)
    return 1 << (6 if at in SIGNS and bit == 7 else bit)


def byte_that_rots(draw: random.Random, header: BatchHeader) -> int:
    """Of a batch: what its CRC protects, but for that by which rules know a batch (its producer, sequence and
    offsets).
    """
    if draw.random() < ENVELOPES_ROT:
        return int(draw.choice(ROT_IN_ENVELOPE))
    return draw.randrange(ENVELOPE_BYTES, header.size_bytes)
