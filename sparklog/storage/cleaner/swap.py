"""Putting a cleaned segment in the place of those that it was made of, so that a crash is harmless anywhere.

    <n>.log.cleaned    being written; nobody refers to it
    <n>.log.swap       complete and synced; it replaces every segment from <n> up to where its last batch ends
    <n>.log            the first of those segments, or already the cleaned one in its place

1. ``<n>.log.cleaned`` is written and synced.
2. Under the log's lock: unless the log was cut meanwhile, it is renamed to ``.swap``.
3. The directory is synced, without the lock.
4. Under the lock: the indexes of the old segments and the segments themselves but the first are removed, last
   one first; ``.swap`` is renamed to ``<n>.log``, which replaces the first in one go; its indexes, which step
   1 has written and synced as ``<n>.index.cleaned``, get their names. Written only here, they would not be on
   the disk, and a recovery point that is past them would vouch for them.

A start removes ``.cleaned`` and finishes step 4 for ``.swap``. That the last batch of the sources is always
kept, if only its envelope, is what tells where the range ends. A truncation between 2 and 4 takes ``.swap``
back, synced, before it cuts anything: what it cuts must not come again.

Replies that are being sent hold the old files open; those stay readable until the last holder lets go.
"""

import logging
import re
from dataclasses import dataclass
from typing import Final

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import BatchHeader
from sparklog.storage.disk import Disk
from sparklog.storage.recovery.scan import check
from sparklog.storage.segment import LOG, OFFSET_INDEX, TIME_INDEX, Segment, file_name

CLEANED_SUFFIX: Final = ".log.cleaned"
ASIDE_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".log.swap"
_SWAP_FILE: Final = re.compile(r"(\d{20})\.log\.swap")
_LOG_FILE: Final = re.compile(r"(\d{20})\.log")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Swap:
    """A cleaned segment, written and synced, and what it replaces in a log of this generation."""

    sources: tuple[Segment, ...]
    fresh: Segment
    generation: int
    disk: Disk

    @property
    def directory(self) -> str:
        return self.fresh.directory

    def _path(self, suffix: str) -> str:
        return f"{self.directory}/{file_name(self.fresh.base_offset, suffix)}"

    def announce(self) -> None:
        """Step 2."""
        self.disk.rename(self._path(CLEANED_SUFFIX), self._path(SWAP_SUFFIX))

    def sync(self) -> None:
        """Step 3."""
        self.disk.sync_directory(self.directory)

    def carry_out(self) -> None:
        """Step 4."""
        bases = [segment.base_offset for segment in self.sources]
        _put_in_place(self.disk, self.directory, bases)
        self.fresh.take_from_aside(ASIDE_SUFFIX)
        self.fresh.cool()

    def take_back(self) -> None:
        """Instead of step 4: the log is about to be cut."""
        self.disk.remove(self._path(SWAP_SUFFIX))
        self.disk.sync_directory(self.directory)


def _put_in_place(disk: Disk, directory: str, bases: list[int]) -> None:
    for base_offset in reversed(bases):
        for suffix in (OFFSET_INDEX, TIME_INDEX, LOG):
            path = f"{directory}/{file_name(base_offset, suffix)}"
            if disk.exists(path) and (suffix != LOG or base_offset != bases[0]):
                disk.remove(path)
    path = f"{directory}/{file_name(bases[0], SWAP_SUFFIX)}"
    disk.rename(path, f"{directory}/{file_name(bases[0], LOG)}")


def finish_interrupted(disk: Disk, directory: str) -> None:
    """At a start: put every ``.swap`` in its place."""
    names = disk.list(directory)
    bases = sorted(int(match[1]) for name in names if (match := _LOG_FILE.fullmatch(name)))
    for match in filter(None, (_SWAP_FILE.fullmatch(name) for name in names)):
        base_offset = int(match[1])
        end_offset = _end_of(disk, directory, base_offset)
        if end_offset is None:
            logger.error("%s/%s is damaged; the segments that it was made of stay", directory, match[0])
            continue
        replaced = [base for base in bases if base_offset <= base < end_offset]
        logger.warning("finishing the compaction of segments %s in %s", replaced or [base_offset], directory)
        _put_in_place(disk, directory, replaced or [base_offset])
        disk.sync_directory(directory)


def _end_of(disk: Disk, directory: str, base_offset: int) -> int | None:
    """Where a swap file ends; None if it is not intact, which no crash can bring about."""
    end_offset = base_offset

    def visit(_position: int, header: BatchHeader) -> None:
        nonlocal end_offset
        end_offset = header.next_offset

    try:
        file = disk.open(f"{directory}/{file_name(base_offset, SWAP_SUFFIX)}")
        trouble = check(file, base_offset, visit)
    except CorruptBatch:
        return None
    return end_offset if trouble is None and end_offset > base_offset else None
