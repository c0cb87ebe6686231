"""What a simulated file holds, and what befalls its bytes: a power cut, a failed fsync, rot.

A power cut decides for every file that was written since its last sync whether the writes are kept, lost,
torn at some byte, or kept here and lost there, sector by sector or page by page: a later page may be on the
disk and an earlier one be zeros. What an fsync that failed should have saved is cut off, or zeros, once
nobody has it in memory any more.
"""

import random
from dataclasses import dataclass
from typing import Final

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import BatchHeader, split

PAGES: Final = (512, 4_096)
"""What a power cut leaves whole: a sector, or a page of the cache."""


class Inode:
    """A file's bytes, whatever its name."""

    __slots__ = ("data", "synced")

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced: bytes | None = b""
        """None while nothing was written since the last sync."""

    def about_to_change(self) -> None:
        if self.synced is None:
            self.synced = bytes(self.data)

    def sync(self) -> None:
        self.synced = None

    def cut_power(self, draw: random.Random) -> bool:
        """Whether what is there now has parts of what was written, and a gap before the last of them."""
        synced, written = self.synced, self.data
        if synced is None:
            return False
        fate = draw.choice(("kept", "lost", "torn", "in pieces", "in pieces"))
        if fate == "lost":
            self.data = bytearray(synced)
        elif fate == "torn":
            shared = min(len(synced), len(self.data))
            keep = draw.randint(shared, max(shared, len(self.data)))
            del self.data[keep:]
        elif fate == "in pieces":
            self.data = _in_pieces(synced, self.data, draw)
        self.synced = None
        return len(self.data) > len(synced) and self.data != written[: len(self.data)]


def _in_pieces(synced: bytes, written: bytearray, draw: random.Random) -> bytearray:
    """Every page that was written since the last sync is on the disk or not, whatever became of the others.

    A file that became shorter is so, or not yet: a size is no page.
    """
    if len(written) < len(synced) and draw.random() < 0.5:
        return bytearray(synced)
    page, share = draw.choice(PAGES), draw.choice((0.3, 0.7))
    data = bytearray(min(len(synced), len(written)))
    data[:] = synced[: len(data)]
    for at in range(0, len(written), page):
        piece = written[at : at + page]
        if piece != data[at : at + page] and draw.random() < share:
            if len(data) < at:
                data += bytes(at - len(data))  # a hole
            data[at : at + page] = piece
    return data


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
        pairs = zip(saved, inode.data, strict=False)
        start = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
        start = min(len(saved), len(inode.data)) if start is None else start
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
