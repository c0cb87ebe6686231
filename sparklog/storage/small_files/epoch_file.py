"""A log's ``leader-epoch-checkpoint``, which lags the epoch history in memory.

Recovery derives missing epochs from the batches on disk. So the file is written when the log is flushed, and
written and synced before batches are removed from which recovery would derive epochs.
"""

from dataclasses import dataclass

from sparklog.core.replication.epoch_history import EpochEntry, EpochHistory
from sparklog.storage.disk import Disk
from sparklog.storage.small_files import checkpoints


@dataclass(slots=True)
class EpochFile:
    """``entries``: the content of the file. ``is_synced``: that content survives a power cut."""

    disk: Disk
    directory: str
    entries: tuple[EpochEntry, ...]
    is_synced: bool

    def keep(self, history: EpochHistory) -> None:
        """Write and sync ``history``, because the batches from which it could be derived will be removed.

        Syncs even if a concurrent flush is going to: that flush may not have reached this file yet.
        """
        self._write(history)
        if self.disk.exists(self._path):
            self.disk.sync_file(self._path)
            self.disk.sync_directory(self.directory)
            self.is_synced = True

    def _write(self, history: EpochHistory) -> None:
        entries = tuple(history.entries)
        if entries != self.entries:
            checkpoints.write_epochs(self.disk, self._path, history)
            self.entries, self.is_synced = entries, False

    def write_for_sync(self, history: EpochHistory) -> list[str]:
        """First step of a flush: write ``history``; the paths that the flush must sync."""
        self._write(history)
        if self.is_synced:
            return []
        self.is_synced = True
        return [self._path]

    @property
    def _path(self) -> str:
        return f"{self.directory}/{checkpoints.EPOCHS}"
