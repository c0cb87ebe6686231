"""This application's entry in ZooKeeper: who it is, and how its brokers are, as its supervisor says.

The node is ephemeral, so it goes with the session of the driver. It is written at most once every
``WRITE_EVERY_MS``, and again when a new session has begun. Everything here runs on the event loop's thread.
"""

import logging
from collections.abc import Callable
from typing import Final

from sparklog.core.controller.state.applications import (
    APPLICATIONS,
    Application,
    application_path,
    encode_application,
)
from sparklog.model.time import Clock
from sparklog.model.zookeeper import Create, Delete, Operation, SetData, ZooKeeper, ZooKeeperError

logger: Final = logging.getLogger(__name__)

WRITE_EVERY_MS: Final = 1_000


class ApplicationEntry:
    """``after`` calls something back on the loop's thread, some milliseconds later."""

    def __init__(
        self, zookeeper: ZooKeeper, clock: Clock, after: Callable[[int, Callable[[], None]], None]
    ) -> None:
        self._zookeeper = zookeeper
        self._clock = clock
        self._after = after
        self._wanted: Application | None = None
        self._written: tuple[int, Application] | None = None
        """The session that wrote, and what."""
        self._tried_ms: int | None = None
        self._is_waiting = False

    def publish(self, application: Application) -> None:
        """Write this, at once or within a second; a later call goes over it."""
        self._wanted = application
        self.write()

    def write(self) -> None:
        """Write what is wanted, unless it is there or was written within the last second."""
        wanted = self._wanted
        if wanted is None or self._written == (self._zookeeper.session_id, wanted) or self._is_waiting:
            return
        now_ms = self._clock.monotonic_ms()
        wait_ms = 0 if self._tried_ms is None else self._tried_ms + WRITE_EVERY_MS - now_ms
        if wait_ms > 0:
            self._is_waiting = True
            self._after(wait_ms, self._end_wait)
            return
        self._tried_ms = now_ms
        session = self._zookeeper.session_id
        try:
            self._write(wanted, session)
        except ZooKeeperError as error:
            logger.info("the entry of application %s is written again: %s", wanted.name, error)
            self._is_waiting = True
            self._after(WRITE_EVERY_MS, self._end_wait)
        else:
            self._written = (session, wanted)

    def _end_wait(self) -> None:
        self._is_waiting = False
        self.write()

    def _write(self, wanted: Application, session: int) -> None:
        self._zookeeper.ensure_path(APPLICATIONS)
        path, data = application_path(wanted.name), encode_application(wanted)
        stat = self._zookeeper.exists(path)
        operations: list[Operation] = [Create(path, data, ephemeral=True)]
        if stat is not None and stat.ephemeral_owner == session:
            operations = [SetData(path, data, stat.version)]
        elif stat is not None:
            # A former driver of this application left it, and its session has not ended yet.
            operations.insert(0, Delete(path))
        self._zookeeper.multi(operations, generation=self._zookeeper.generation)
