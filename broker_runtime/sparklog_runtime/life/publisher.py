"""Keeps ``cluster.json`` current: written when it would say something new, at once or within a moment."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sparklog.model.errors import SparklogError
from sparklog_runtime.life.cluster_file import ClusterFile, remove_cluster_file, write_cluster_file

logger: Final = logging.getLogger(__name__)

INTERVAL_S: Final = 0.25
"""How long an unannounced change, such as the election of another controller, may stay unnoticed."""


class Publisher:
    """Writes what ``describe`` says, from ``start`` to ``stop``; ``announce`` makes it look at once. With
    each look it calls ``publish``, too, which tells others.
    """

    def __init__(
        self, path: Path, describe: Callable[[], ClusterFile], publish: Callable[[], None] = lambda: None
    ) -> None:
        self._tell_others = publish
        self._path = path
        self._describe = describe
        self._announced = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="cluster-file", daemon=True)
        self._last: ClusterFile | None = None

    def start(self) -> None:
        """Write the file, and keep it current from now on."""
        self._publish()
        self._thread.start()

    def announce(self) -> None:
        """Something has changed."""
        self._announced.set()

    def stop(self) -> None:
        """Write no more, and take the file away: it describes a running cluster."""
        self._stopping = True
        self._announced.set()
        if self._thread.ident is not None:
            self._thread.join()
            remove_cluster_file(self._path)

    def _run(self) -> None:
        while True:
            self._announced.wait(INTERVAL_S)
            self._announced.clear()
            if self._stopping:
                return
            try:
                self._publish()
            except (SparklogError, OSError) as error:
                logger.warning("%s is not current: %s", self._path, error)

    def _publish(self) -> None:
        self._tell_others()
        content = self._describe()
        if content != self._last:
            write_cluster_file(self._path, content)
            self._last = content
