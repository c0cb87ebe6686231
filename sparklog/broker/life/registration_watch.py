"""Notices when this broker's registration is taken away although its session lives.

A supervisor that lost touch with a broker reports it dead, and the controller deletes its registration: from
then on nobody tells this broker anything, while clients that know only it would go on writing to a leader
that was replaced long ago. So a broker without its registration stops, as with an expired session.
"""

import logging
import threading
from collections.abc import Callable

from sparklog.core.controller.state.znodes import broker_path
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.zookeeper import ZooKeeper, ZooKeeperError

logger = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 1.0
"""How often to look when ZooKeeper could not say: while it is away the broker goes on serving."""

JOIN_SECONDS = 1.0
"""The thread may hang in a question to a ZooKeeper that is away; the end of the session ends that."""


class RegistrationWatch:
    """One thread that looks at the registration whenever ZooKeeper says that it may have changed."""

    def __init__(
        self, zookeeper: ZooKeeper, broker: BrokerId, epoch: BrokerEpoch, lost: Callable[[str], None]
    ) -> None:
        self._zookeeper = zookeeper
        self._path = broker_path(broker)
        self._epoch = epoch
        self._lost = lost
        self._look = threading.Event()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="registration-watch", daemon=True)

    def start(self) -> None:
        self._look.set()
        self._thread.start()

    def close(self) -> None:
        self._is_closing = True
        self._look.set()
        self._thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        failed = False
        while True:
            self._look.wait(LOOK_AGAIN_SECONDS if failed else None)
            self._look.clear()
            if self._is_closing:
                return
            try:
                self._zookeeper.watch_data(self._path, self._look.set)
                stat = self._zookeeper.exists(self._path)
                failed = False
            except ZooKeeperError as error:
                logger.info("cannot look at our registration in ZooKeeper: %s", error)
                failed = True
                continue
            if stat is None or stat.czxid != self._epoch:
                self._lost(f"its registration of epoch {self._epoch} was taken away: others may lead instead")
                return
