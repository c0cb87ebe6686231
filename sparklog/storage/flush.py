"""The middle step of a flush: fsync, without the log's lock."""

import contextlib
from dataclasses import dataclass

from sparklog.storage.disk import Disk, File


@dataclass(frozen=True, slots=True)
class Flush:
    """What must be synced so that the log survives a power cut up to ``offset``."""

    offset: int
    generation: int
    files: tuple[File, ...]
    paths: tuple[str, ...]
    directories: tuple[str, ...]
    disk: Disk

    def run(self) -> None:
        """Sync files, paths and directories; needs no lock. After an OSError the directory is suspect."""
        for file in self.files:
            file.fsync()
        for path in self.paths:
            # An index or a snapshot whose segment was removed or compacted meanwhile needs no sync.
            with contextlib.suppress(FileNotFoundError):
                self.disk.sync_file(path)
        for directory in self.directories:
            self.disk.sync_directory(directory)
