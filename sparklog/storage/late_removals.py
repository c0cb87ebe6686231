"""Deleted files: renamed to ``<name>.deleted`` at once, removed after ``file.delete.delay.ms``.

A log's lock is held while its segments change, and removing a large file is slow, but a rename is quick. The
next start removes files that are still waiting when the broker stops.
"""

import contextlib
from dataclasses import dataclass, field
from typing import Final

from sparklog.storage.disk import Disk

DELETED_SUFFIX: Final = ".deleted"


@dataclass(slots=True)
class LateRemovals:
    """The renamed files of one log, oldest first."""

    disk: Disk
    _waiting: list[tuple[int, str]] = field(default_factory=list)

    def give_up(self, path: str, due_ms: int) -> None:
        """Rename ``path``; the file is to be removed at ``due_ms``."""
        self.disk.rename(path, path + DELETED_SUFFIX)
        self._waiting.append((due_ms, path + DELETED_SUFFIX))

    def take_due(self, now_ms: int) -> list[str]:
        """The files that are due. Remove them with ``remove_files``, which needs no lock."""
        due = [path for due_ms, path in self._waiting if due_ms <= now_ms]
        self._waiting = [entry for entry in self._waiting if entry[0] > now_ms]
        return due

    def take_all(self) -> list[str]:
        taken, self._waiting = [path for _, path in self._waiting], []
        return taken


def remove_files(disk: Disk, paths: list[str]) -> None:
    for path in paths:
        # A later segment of that name may have replaced the file, or the whole log may be removed.
        with contextlib.suppress(FileNotFoundError):
            disk.remove(path)
