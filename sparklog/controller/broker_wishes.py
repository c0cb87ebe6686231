"""What is wished of an application's brokers: read and followed for their supervisor.

Each broker's node is watched and read again when it has changed. A watch that is lost with the connection
fires too, so no change is missed.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from sparklog.core.controller.state.applications import KnownBroker, decode_known, known_broker_path
from sparklog.model.ids import BrokerId
from sparklog.model.loops import Await, Loop, Signal
from sparklog.model.zookeeper import ZooKeeper, ZooKeeperError

logger: Final = logging.getLogger(__name__)

LOOK_AGAIN_MS: Final = 1_000

Known = Mapping[BrokerId, KnownBroker]


def read_wishes(zookeeper: ZooKeeper, brokers: Iterable[BrokerId]) -> dict[BrokerId, KnownBroker]:
    """The nodes of these brokers, as far as they have one."""
    ids = list(brokers)
    nodes = zookeeper.get_many([known_broker_path(broker) for broker in ids])
    return {
        broker: decode_known(broker, node.data, node.stat.version)
        for broker, node in zip(ids, nodes, strict=True)
        if node is not None
    }


def follow_wishes(zookeeper: ZooKeeper, brokers: Iterable[BrokerId], obey: Callable[[Known], None]) -> Loop:
    """Call ``obey`` with the nodes of these brokers, and again with those that have changed. Without end."""
    changed = Signal()
    due: deque[BrokerId] = deque(brokers)

    def on_change(broker: BrokerId) -> None:
        due.append(broker)
        changed.give()

    while True:
        looking = set[BrokerId]()
        while due:
            looking.add(due.popleft())
        try:
            for broker in sorted(looking):
                zookeeper.watch_data(known_broker_path(broker), partial(on_change, broker))
            known = read_wishes(zookeeper, sorted(looking))
        except ZooKeeperError as error:
            logger.info("the wishes about brokers are read again: %s", error)
            due.extend(looking)
            yield Await(changed, LOOK_AGAIN_MS)
            continue
        obey(known)
        yield Await(changed)
