"""A log's ``leader-epoch-checkpoint``, which follows the history in memory at a distance.

What the batches on disk tell need not be in it: recovery derives that again. So it is written when the log is
flushed, and, synced, before batches go from which recovery would derive it.
"""

from dataclasses import dataclass

from sparklog.core.replication.epoch_history import EpochEntry, EpochHistory
from sparklog.storage import checkpoints
from sparklog.storage.disk import Disk


@dataclass(slots=True)
class EpochFile:
    """``entries`` are what the file holds; ``is_synced``: a power cut cannot change that."""

    disk: Disk
    directory: str
    entries: tuple[EpochEntry, ...]
    is_synced: bool

    def keep(self, history: EpochHistory) -> None:
        """Make sure that whatever happens the file says what ``history`` does: batches that say it go.

        Also where a flush has it in hand, which may not have come that far.
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
        """As the first step of a flush, make the file say what ``history`` does; what is to be synced."""
        self._write(history)
        if self.is_synced:
            return []
        self.is_synced = True
        return [self._path]

    @property
    def _path(self) -> str:
        return f"{self.directory}/{checkpoints.EPOCHS}"
