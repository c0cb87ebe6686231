"""Files that are given up but stay for a while: renamed at once, removed after ``file.delete.delay.ms``.

To remove a large file takes a file system some time, and a log's lock is held while its segments change; a
rename is quick. What is still there when the broker stops is swept away at the next start.
"""

import contextlib
from dataclasses import dataclass, field
from typing import Final

from sparklog.storage.disk import Disk

DELETED_SUFFIX: Final = ".deleted"


@dataclass(slots=True)
class LateRemovals:
    """The files that one log has given up, oldest first."""

    disk: Disk
    _waiting: list[tuple[int, str]] = field(default_factory=list)

    def give_up(self, path: str, due_ms: int) -> None:
        """Rename ``path`` away; it is removed when ``due_ms`` has come."""
        self.disk.rename(path, path + DELETED_SUFFIX)
        self._waiting.append((due_ms, path + DELETED_SUFFIX))

    def take_due(self, now_ms: int) -> list[str]:
        """Whose time has come; ``remove`` them, for which no lock is needed."""
        due = [path for due_ms, path in self._waiting if due_ms <= now_ms]
        self._waiting = [entry for entry in self._waiting if entry[0] > now_ms]
        return due

    def take_all(self) -> list[str]:
        taken, self._waiting = [path for _, path in self._waiting], []
        return taken


def remove_files(disk: Disk, paths: list[str]) -> None:
    for path in paths:
        # A segment of the same name may have been given up since, or the whole log removed.
        with contextlib.suppress(FileNotFoundError):
            disk.remove(path)
