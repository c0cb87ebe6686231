"""How much room logs take: those of our processes, and what programs write that are not ours.

controller.log, broker-N.log   ours: rolled at 20 MB, with the last three beside (.1, .2, .3)
spark.log                      Spark's: the same, by conf/log4j2.properties
spark-output.log               what Spark's processes write beside: cut at 20 MB, with the last one beside
zookeeper.log                  the same
"""

import contextlib
import logging
import logging.handlers
import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

logger: Final = logging.getLogger(__name__)

LOG_BYTES_MAX: Final = 20_000_000
LOGS_KEPT: Final = 3
LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s %(threadName)s: %(message)s"

LOOK_INTERVAL_S: Final = 10.0


class LogFile(logging.handlers.RotatingFileHandler):
    """The log of a process of ours. Records are dropped until its folder exists."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "a", LOG_BYTES_MAX, LOGS_KEPT, encoding="utf-8", delay=True, errors="replace")

    def emit(self, record: logging.LogRecord) -> None:
        if Path(self.baseFilename).parent.is_dir():
            super().emit(record)


def log_to_file(path: Path) -> None:
    """Send this process's log to a file, instead of wherever it went before."""
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, handlers=[LogFile(path)], force=True)
    logging.captureWarnings(True)


class OutputFiles:
    """Files to which running programs write by descriptors that append. ``start``, ``stop``.

    Such a program goes on at the end of the file, wherever that is. So the file is copied beside itself, and
    is cut to nothing. Lines that are written between the two are lost.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="output-files", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_INTERVAL_S):
            for path in self._paths:
                cut_if_large(path)


def cut_if_large(path: Path, bytes_max: int = LOG_BYTES_MAX) -> None:
    """Cut the file to nothing if it is larger, with what it had in ``PATH.1``."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size <= bytes_max:
            return
        try:
            shutil.copyfile(path, path.with_name(f"{path.name}.1"))
        except OSError as error:  # such as a full disk, which the cut gives room
            logger.warning("%s is cut, and its end is not kept: %s", path, error)
        os.truncate(path, 0)
