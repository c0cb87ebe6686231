"""Replacing segments by the cleaned segment that was made of them; a crash is harmless at every step.

    <n>.log.cleaned    being written, not used yet
    <n>.log.swap       complete and synced; replaces every segment from <n> to the end of its last batch
    <n>.log            the first of those segments, or already the cleaned segment

1. Write and sync ``<n>.log.cleaned`` and its indexes, ``<n>.index.cleaned`` and so on.
2. Under the log's lock, unless the log was truncated meanwhile: rename ``<n>.log.cleaned`` to ``.swap``.
3. Sync the directory, without the lock.
4. Under the lock: remove the sources' indexes and all sources but the first, the last first. Replace the
   index of aborted transactions, synced. Rename ``.swap`` to ``<n>.log``, which replaces the first source
   atomically. Rename the other indexes to their final names; they must be on disk already, because the
   recovery point may be beyond this segment.

The index of aborted transactions is the only one that no start can rebuild for a segment that it does not
check. A stale entry, whose marker was cleaned away, would hide what its producer committed later.

A start removes ``.cleaned`` and completes step 4 for ``.swap``. The sources' last batch is always kept, at
least as an envelope, so the end of the range is known. A truncation between steps 2 and 4 first removes
``.swap``, synced, so that a later start does not restore truncated batches.

Replies in flight hold the old files open, which therefore stay readable.
"""

import logging
import re
from dataclasses import dataclass
from typing import Final

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import BatchHeader
from sparklog.storage.disk import Disk
from sparklog.storage.segments.scan import check
from sparklog.storage.segments.segment import INDEXES, LOG, Segment, file_name
from sparklog.storage.segments.transaction_index import TRANSACTION_INDEX

CLEANED_SUFFIX: Final = ".log.cleaned"
ASIDE_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".log.swap"
_SWAP_FILE: Final = re.compile(r"(\d{20})\.log\.swap")
_LOG_FILE: Final = re.compile(r"(\d{20})\.log")

logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Swap:
    """A cleaned segment, written and synced, and the sources that it replaces in a log of ``generation``."""

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
        """Cancel the swap instead of step 4, because the log will be truncated."""
        self.disk.remove(self._path(SWAP_SUFFIX))
        self.disk.sync_directory(self.directory)


def _put_in_place(disk: Disk, directory: str, bases: list[int]) -> None:
    for base_offset in reversed(bases):
        kept = (LOG, TRANSACTION_INDEX) if base_offset == bases[0] else ()
        for suffix in (*INDEXES, LOG):
            path = f"{directory}/{file_name(base_offset, suffix)}"
            if suffix not in kept and disk.exists(path):
                disk.remove(path)
    _replace_transaction_index(disk, directory, bases[0])
    path = f"{directory}/{file_name(bases[0], SWAP_SUFFIX)}"
    disk.rename(path, f"{directory}/{file_name(bases[0], LOG)}")


def _replace_transaction_index(disk: Disk, directory: str, base_offset: int) -> None:
    """Give the cleaned segment's index its name; an empty one is a file only while it has not.

    Nothing is left to do if that file is gone: an interrupted swap had come so far.
    """
    path = f"{directory}/{file_name(base_offset, TRANSACTION_INDEX)}"
    aside = path + ASIDE_SUFFIX
    if not disk.exists(aside):
        return
    if disk.size(aside):
        disk.rename(aside, path)
        disk.sync_directory(directory)
        return
    if disk.exists(path):
        disk.remove(path)
        disk.sync_directory(directory)
    disk.remove(aside)


def finish_interrupted(disk: Disk, directory: str) -> None:
    """At a start: complete step 4 for every ``.swap``."""
    names = disk.list(directory)
    bases = sorted(int(match[1]) for name in names if (match := _LOG_FILE.fullmatch(name)))
    for match in filter(None, (_SWAP_FILE.fullmatch(name) for name in names)):
        base_offset = int(match[1])
        end_offset = _end_of(disk, directory, base_offset)
        if end_offset is None:
            logger.error("%s/%s is damaged, so the segments that it would replace stay", directory, match[0])
            continue
        replaced = [base for base in bases if base_offset <= base < end_offset]
        logger.warning("finishing the compaction of segments %s in %s", replaced or [base_offset], directory)
        _put_in_place(disk, directory, replaced or [base_offset])
        disk.sync_directory(directory)


def _end_of(disk: Disk, directory: str, base_offset: int) -> int | None:
    """The end offset of a swap file; None if the file is damaged, which a crash cannot cause."""
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
