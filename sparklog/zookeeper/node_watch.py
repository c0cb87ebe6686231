"""A loop that reads a ZooKeeper node whenever the node may have changed."""

import logging
from collections.abc import Callable
from typing import Final

from sparklog.model.loops import Await, Loop, Signal
from sparklog.model.zookeeper import Node, ZooKeeper, ZooKeeperError

logger: Final = logging.getLogger(__name__)

LOOK_AGAIN_MS: Final = 1_000
"""Pause before the next read after ZooKeeper did not answer. Meanwhile the broker continues to serve."""


def watch_node(zookeeper: ZooKeeper, path: str, look: Callable[[Node | None], bool]) -> Loop:
    """Call ``look`` with the node as it is now, None if it does not exist, and again after every change.

    Ends when ``look`` returns False. Changes in quick succession may cause one call.
    """
    changed = Signal()
    while True:
        try:
            zookeeper.watch_data(path, changed.give)
            node = zookeeper.get(path)
        except ZooKeeperError as error:
            logger.info("cannot look at %s in ZooKeeper: %s", path, error)
            yield Await(changed, LOOK_AGAIN_MS)
            continue
        if not look(node):
            return
        yield Await(changed)
