"""Nodes that are read whole, and then again as notifications name them: how rules, users and quotas are kept.

All is read before the owner listens, and after each reconnect, because notifications may have come and gone
meanwhile. Else only what a notification names is read again. An owner that is cut off from ZooKeeper goes on
with what it knows.
"""

import logging
from collections.abc import Callable
from typing import Final

from sparklog.model.loops import Await, Loop, Signal
from sparklog.model.zookeeper import AccessRefused, SessionEvent, ZooKeeper, ZooKeeperError

logger: Final = logging.getLogger(__name__)

LOOK_AGAIN_MS: Final = 1_000
"""Pause after ZooKeeper did not answer."""


class NotifiedNodes:
    """Reads by ``read_whole``, which raises ZooKeeperError if ZooKeeper does not answer, and by ``follow``
    after a notification.
    """

    def __init__(
        self, zookeeper: ZooKeeper, what: str, read_whole: Callable[[], None], follow: Callable[[], None]
    ) -> None:
        """``what`` names the nodes in the log."""
        self._zookeeper = zookeeper
        self._what = what
        self._read_whole = read_whole
        self._follow = follow
        self._changed = Signal()
        self._watched: set[str] = set()
        """Directories of notifications whose next change gives the signal."""
        self._must_read_all = True
        self._is_refused = False
        """Whether the last read was refused, and the log says so."""
        zookeeper.on_session(self._on_session)

    def _on_session(self, event: SessionEvent) -> None:
        if event == "connected":
            self._must_read_all = True
        self._changed.give()

    def read_all(self) -> None:
        """Raises ZooKeeperError if ZooKeeper does not answer."""
        self._must_read_all = False
        try:
            self._zookeeper.sync()
            self._read_whole()
        except ZooKeeperError:
            self._must_read_all = True
            raise

    def loop(self) -> Loop:
        while True:
            try:
                if self._must_read_all:
                    self.read_all()
                else:
                    self._follow()
                self._is_refused = False
            except ZooKeeperError as error:
                self._must_read_all = True
                self._log(error)
                yield Await(self._changed, LOOK_AGAIN_MS)
                continue
            yield Await(self._changed)

    def _log(self, error: ZooKeeperError) -> None:
        """That ZooKeeper is away is reported elsewhere. A refusal lasts until somebody acts: once loudly."""
        is_news = isinstance(error, AccessRefused) and not self._is_refused
        self._is_refused = isinstance(error, AccessRefused)
        level = logging.ERROR if is_news else logging.INFO
        logger.log(level, "cannot read %s in ZooKeeper, going on with those known: %s", self._what, error)

    def notifications(self, directory: str, prefix: str) -> list[str]:
        """The names of the notifications there, in their order; their next change gives the signal.

        Looked at before what they name is read, so that none that comes meanwhile is missed.
        """
        if directory not in self._watched:
            self._watched.add(directory)
            try:
                self._zookeeper.watch_children(directory, lambda: self._on_fired(directory))
            except ZooKeeperError:
                self._watched.discard(directory)
                raise
        return [name for name in self._zookeeper.children(directory) if name.startswith(prefix)]

    def _on_fired(self, directory: str) -> None:
        self._watched.discard(directory)
        self._changed.give()
