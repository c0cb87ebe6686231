"""The marker of a clean stop, and the note that replaces it at the next start.

A start removes the marker before anything is appended; otherwise a later crash would look like a clean stop.
That start may fail before the broker registers: a port is in use, the process is killed. A broker appends
nothing before it registers. So on the same boot, where the page cache survived, the logs still hold all that
the clean stop left. Therefore the start that removes the marker writes a note: the broker epoch in the
marker, and the current boot id. The reader of the note compares that epoch with the last epoch that
registered.

The note proves nothing about single files, because a failed start may have died in the middle of a write.
"""

import json
import logging
from typing import Final

from sparklog.model.ids import BrokerEpoch
from sparklog.storage.disk import Disk

CLEAN_MARKER: Final = ".kafka_cleanshutdown"
FOUND_CLEAN: Final = "found-clean"

logger: Final = logging.getLogger(__name__)


class CleanStop:
    """The marker and the note of one log directory."""

    def __init__(self, disk: Disk, directory: str, boot_id: str) -> None:
        self._disk = disk
        self._directory = directory
        self._boot_id = boot_id
        self._is_taken = False
        self._marked: BrokerEpoch | None = None
        self._noted = self._read_note()

    @property
    def noted(self) -> BrokerEpoch | None:
        """The broker epoch whose clean marker an earlier start on this boot removed."""
        return self._noted

    def take(self) -> BrokerEpoch | None:
        """Remove the marker, synced; the broker epoch in it, or None if there was no marker."""
        if not self._is_taken:
            self._marked = self.read_marker()
            if self._marked is not None:
                self._write_note(self._marked)
            path = f"{self._directory}/{CLEAN_MARKER}"
            if self._disk.exists(path):
                self._disk.remove(path)
                self._disk.sync_directory(self._directory)
            self._is_taken = True
        return self._marked

    def mark(self, broker_epoch: int) -> None:
        text = json.dumps({"version": 0, "brokerEpoch": broker_epoch})
        self._disk.write_atomically(f"{self._directory}/{CLEAN_MARKER}", text.encode("ascii"))
        self._is_taken = False

    def read_marker(self) -> BrokerEpoch | None:
        found = self._read(CLEAN_MARKER)
        return None if found is None else found[0]

    def _read_note(self) -> BrokerEpoch | None:
        found = self._read(FOUND_CLEAN)
        return found[0] if found is not None and found[1] == self._boot_id else None

    def _write_note(self, broker_epoch: BrokerEpoch) -> None:
        """Write the note, without a sync: the note is useless on another boot."""
        text = json.dumps({"version": 0, "brokerEpoch": broker_epoch, "bootId": self._boot_id})
        path = f"{self._directory}/{FOUND_CLEAN}"
        self._disk.write_atomically(path, text.encode("ascii"), sync=False)

    def _read(self, name: str) -> tuple[BrokerEpoch, str | None] | None:
        """Broker epoch and boot id; None if the file is missing or damaged."""
        path = f"{self._directory}/{name}"
        if not self._disk.exists(path):
            return None
        try:
            content = json.loads(self._disk.read(path))
            return BrokerEpoch(int(content["brokerEpoch"])), content.get("bootId")
        except (ValueError, KeyError, TypeError) as error:
            logger.warning("ignoring the damaged file %s: %r", path, error)
            return None
