"""``history-start``: where a log begins whose first records lie in a remote store only.

The log start is what a reader may ask for. The *local start* is the first offset on this disk, and may be
later. The first segment's name says where the disk begins, so without this file a restart would take the
records before it for deleted, and the log start would rise in every replica.

The file is there only while the log start is before the first segment. It is written, synced, before
segments go, and removed after the log start has reached the local start. So a crash leaves a start that is
too early at worst; the remote store's manifest knows better, and the leader raises the log start to it. A
damaged file says that there is a history, and not from where: the log then begins at 0, which is too early at
worst, too. Without it the leader would delete the history in the store as what is no longer in the log.
"""

import logging
from dataclasses import dataclass, field
from typing import Final

from sparklog.storage.disk import Disk
from sparklog.storage.small_files import checkpoints

HISTORY_START: Final = "history-start"

logger: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class HistoryStart:
    """The file of one log. ``offset``: its content; None without a file."""

    disk: Disk
    directory: str
    offset: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.offset = self._read()

    def _read(self) -> int | None:
        if not self.disk.exists(self._path):
            return None
        try:
            ((text,),) = checkpoints.parse(self.disk.read(self._path))
            offset = int(text)
            if offset < 0:
                raise ValueError(f"the offset {offset} is negative")
        except ValueError as error:
            logger.warning(
                "%s is damaged (%s): the log begins at 0 until its leader says more", self._path, error
            )
            return 0
        return offset

    def before_removal(self, log_start_offset: int, local_start_offset: int) -> None:
        """The log will begin on this disk at ``local_start_offset``, and for readers maybe earlier."""
        if log_start_offset < local_start_offset and log_start_offset != self.offset:
            self.disk.write_atomically(self._path, checkpoints.render([[log_start_offset]]))
            self.offset = log_start_offset

    def settle(self, log_start_offset: int, local_start_offset: int) -> None:
        """The log begins at these offsets now."""
        if log_start_offset < local_start_offset:
            self.before_removal(log_start_offset, local_start_offset)
        elif self.offset is not None:
            self.disk.remove(self._path)
            self.offset = None

    @property
    def _path(self) -> str:
        return f"{self.directory}/{HISTORY_START}"
