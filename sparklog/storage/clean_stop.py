"""The marker of a clean stop, and what is left of it when a start has taken it away.

The marker must be gone before anything is appended, or a crash later on would pass for a clean stop. But a
start may come to no end: a port that is in use, a process that is killed. Until a broker has registered
nothing is appended, so on the same boot, where whatever those starts did is still there, the logs hold all
that the clean stop left. Therefore the start that takes the marker leaves a note of whose it was, and of the
boot on which it was found. Whoever reads the note compares the epoch with the last one that registered.

The note says nothing about files: one of those starts may have died in the middle of a write.
"""

import json
import logging
from typing import Final

from sparklog.model.ids import BrokerEpoch
from sparklog.storage.disk import Disk

CLEAN_MARKER: Final = ".kafka_cleanshutdown"
FOUND_CLEAN: Final = "found-clean"

logger = logging.getLogger(__name__)


class CleanStop:
    """What a log directory's marker and note say."""

    def __init__(self, disk: Disk, directory: str, boot_id: str) -> None:
        self._disk = disk
        self._directory = directory
        self._boot_id = boot_id
        self._is_taken = False
        self._marked: BrokerEpoch | None = None
        self._noted = self._read_note()

    @property
    def noted(self) -> BrokerEpoch | None:
        """Who had stopped cleanly before an earlier start on this boot."""
        return self._noted

    def take(self) -> BrokerEpoch | None:
        """The broker epoch in the marker, or None; afterwards the marker is gone, for good."""
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
        """Not synced: it is of no use on another boot."""
        text = json.dumps({"version": 0, "brokerEpoch": broker_epoch, "bootId": self._boot_id})
        path = f"{self._directory}/{FOUND_CLEAN}"
        self._disk.write_atomically(path, text.encode("ascii"), sync=False)

    def _read(self, name: str) -> tuple[BrokerEpoch, str | None] | None:
        """Epoch and boot; None if the file is not there, or damaged."""
        path = f"{self._directory}/{name}"
        if not self._disk.exists(path):
            return None
        try:
            content = json.loads(self._disk.read(path))
            return BrokerEpoch(int(content["brokerEpoch"])), content.get("bootId")
        except (ValueError, KeyError, TypeError) as error:
            logger.warning("ignoring %s, which is damaged: %r", path, error)
            return None
