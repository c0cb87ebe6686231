"""A connection that the network ended: no FIN and no RST of the other side says that its process did.

The process may live, be registered and serve, on a host that the driver does not reach. Its broker keeps its
registration then, and its slot launches nothing before ZooKeeper has ended that, because two processes would
be one broker.
"""

import errno
import logging
import threading
from collections.abc import Callable
from typing import Final

from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.zookeeper import ZooKeeperError
from sparklog_runtime.broker_process.control_channel import ControlConnection
from sparklog_runtime.supervision.slots import BrokerProcess, Slot

logger: Final = logging.getLogger(__name__)

LOOK_INTERVAL_S: Final = 1.0
_CUT: Final = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH)

IsRegistered = Callable[[BrokerId, BrokerEpoch], bool]
"""Whether ZooKeeper has the registration of this incarnation; ZooKeeperError if it is away."""


class Cuts:
    """``changed`` guards slots, and is notified of what changes in them. ``is_over`` ends all waits."""

    def __init__(
        self, changed: threading.Condition, is_registered: IsRegistered, notice: Callable[[str], None]
    ) -> None:
        self.is_over = False
        self._changed = changed
        self._is_registered = is_registered
        self._notice = notice

    def outlast(self, slot: Slot, connection: ControlConnection, error: OSError | None) -> None:
        """If the slot's connection ended with a cut, wait until its process has another one, or ZooKeeper has
        ended its registration: then that process is no death to report.
        """
        if error is None or error.errno not in _CUT:
            return
        with self._changed:
            process = slot.process
            if slot.connection is not connection or process is None or not slot.machine.was_cut():
                return
        self._notice(
            f"broker {process.broker_id} (process {process.pid}) cannot be reached ({error.strerror}): "
            "none is launched in its place before ZooKeeper has ended its registration"
        )
        while self._may_be_registered(process):
            with self._changed:
                if self._changed.wait_for(
                    lambda: self.is_over or slot.connection is not connection, LOOK_INTERVAL_S
                ):
                    return

    def _may_be_registered(self, process: BrokerProcess) -> bool:
        """While ZooKeeper does not answer, it may be."""
        try:
            return self._is_registered(process.broker_id, process.epoch)
        except ZooKeeperError as error:
            logger.info("whether broker %d is registered is not known: %s", process.broker_id, error)
            return True
