"""Deletes notifications of changes when everybody has read them. In Kafka whoever reads them does that.

A notification is kept for fifteen minutes from when this controller first saw it. A server that was away
longer reads everything again.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from sparklog.model.loops import Loop, Pause
from sparklog.model.time import Clock
from sparklog.model.zookeeper import OperationRefused, ZooKeeper, ZooKeeperError

logger: Final = logging.getLogger(__name__)

KEPT_MS: Final = 15 * 60_000
LOOK_MS: Final = 60_000


class NotificationPurge:
    """``directories`` have the notifications, ``is_in_office`` says whether this controller is the one."""

    def __init__(
        self,
        zookeeper: ZooKeeper,
        directories: Iterable[str],
        clock: Clock,
        is_in_office: Callable[[], bool],
    ) -> None:
        self._zookeeper = zookeeper
        self._directories = tuple(directories)
        self._clock = clock
        self._is_in_office = is_in_office
        self._seen_ms: dict[str, int] = {}

    def loop(self) -> Loop:
        while True:
            yield Pause(LOOK_MS)
            try:
                self.purge()
            except ZooKeeperError as error:
                logger.info("old notifications stay for now: %s", error)

    def purge(self) -> None:
        """Look once. Raises ZooKeeperError if ZooKeeper does not answer."""
        now_ms = self._clock.monotonic_ms()
        present = [
            f"{directory}/{name}"
            for directory in self._directories
            for name in self._zookeeper.children(directory)
        ]
        self._seen_ms = {path: self._seen_ms.get(path, now_ms) for path in present}
        if not self._is_in_office():
            return
        for path, seen_ms in self._seen_ms.items():
            if now_ms - seen_ms >= KEPT_MS:
                try:
                    self._zookeeper.delete(path)
                except OperationRefused as refused:
                    logger.debug("%s is gone already: %s", path, refused)
