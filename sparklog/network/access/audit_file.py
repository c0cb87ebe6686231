"""The file of a server's audit, ``broker-1.jsonl``; before it ``broker-1.1.jsonl``, ``broker-1.2.jsonl``.

Requests do not wait for the disk: they leave lines in a queue, and a thread writes them. If the disk is so
slow, or full, that the queue has ``QUEUE_BYTES_MAX``, further lines are lost; a line with their number stands
in the file as soon as it can be written. Lines are in the page cache once written: the end of the process
loses none of these, a power cut the last ones.
"""

import json
import logging
import os
import threading
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Final

from sparklog.core.security.audit import Audit
from sparklog.model.errors import ConfigError
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock

logger: Final = logging.getLogger(__name__)

DIRECTORY: Final = "audit.log.dir"
QUEUE_BYTES_MAX: Final = 8 << 20
RETRY_S: Final = 1.0
"""After a failed write."""

CLOSE_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class OpenAudit:
    """The audit of a server, None without ``audit.log.dir``, and its file."""

    audit: Audit | None = None
    file: "AuditFile | None" = None

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def open_audit(config: BrokerConfig, server: str, clock: Clock) -> OpenAudit:
    """The audit of ``server``, to be closed. ConfigError if no file can be in the folder."""
    directory = config.get_str(DIRECTORY)
    if not directory:
        return OpenAudit()
    path = Path(directory) / f"{server}.jsonl"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = AuditFile(path, config.get_int("audit.log.max.bytes"), config.get_int("audit.log.max.files"))
    except OSError as error:
        raise ConfigError(f"{DIRECTORY}={directory}: {error.strerror}; name a folder to write to") from None
    return OpenAudit(Audit(server, clock, file.write), file)


class AuditFile:
    """``write`` may be called by any thread. OSError if the file cannot be opened."""

    def __init__(self, path: Path, bytes_max: int, files_max: int) -> None:
        """``bytes_max``: after these a new file is begun. ``files_max``: how many there are at most."""
        self._path = path
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._lines: list[str] = []
        self._queued_bytes = 0
        self._lost = 0
        self._is_closing = False
        self._changed = threading.Condition()
        self._is_failing = False
        self._is_torn = False
        """Whether the file ends within a line."""
        self._file = self._open()
        self._thread = threading.Thread(target=self._run, name=f"audit-{path.stem}", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Queue a line, which is ASCII; it is lost if too many wait."""
        with self._changed:
            if self._queued_bytes + len(line) > QUEUE_BYTES_MAX:
                self._lost += 1
                return
            self._queued_bytes += len(line)
            self._lines.append(line)
            self._changed.notify()

    def close(self) -> None:
        """Write what waits, for two seconds at most."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._lost or self._is_closing)
                lines, lost, is_last = self._lines, self._lost, self._is_closing
                self._lines, self._queued_bytes, self._lost = [], 0, 0
            try:
                self._append([*lines, json.dumps({"event": "lost lines", "count": lost})] if lost else lines)
            except OSError as error:
                self._note_failure(error, lost + len(lines))
        self._file.close()

    def _append(self, lines: list[str]) -> None:
        if not lines:
            return
        self._write_all("".join(f"{line}\n" for line in lines).encode("ascii"))
        self._is_failing = False
        if self._file.tell() >= self._bytes_max:
            self._roll()

    def _write_all(self, data: bytes) -> None:
        """A full disk may take a part: what follows begins a line of its own all the same."""
        left = memoryview(b"\n" + data if self._is_torn else data)
        while left:
            written = self._file.write(left) or 0
            self._is_torn = left[written - 1] != ord("\n")
            left = left[written:]

    def _note_failure(self, error: OSError, lost: int) -> None:
        if not self._is_failing:
            logger.error(
                "%s: %s; lines of the audit are lost and counted until this is mended", self._path, error
            )
        self._is_failing = True
        with self._changed:
            self._lost += lost
            self._changed.wait_for(lambda: self._is_closing, RETRY_S)

    def _roll(self) -> None:
        """Each file takes the next number, the last one goes, and a new one begins."""
        for number in range(self._files_max - 1, 0, -1):
            older = self._path if number == 1 else self._numbered(number - 1)
            if older.exists():
                os.replace(older, self._numbered(number))
        self._file.close()
        self._file = self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.stem}.{number}{self._path.suffix}")

    def _open(self) -> FileIO:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_APPEND
        return FileIO(os.open(self._path, flags, 0o600), "a")
