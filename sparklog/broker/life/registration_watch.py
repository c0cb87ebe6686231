"""Notices when this broker's registration is deleted although its ZooKeeper session lives.

A supervisor that lost the connection to a broker reports it dead, and the controller deletes its
registration. From then on the controller sends this broker nothing, while clients that know only this broker
would write to a leader that was replaced long ago. So a broker without its registration stops, as with an
expired session.
"""

from collections.abc import Callable

from sparklog.core.controller.state.znodes import broker_path
from sparklog.model.ids import BrokerEpoch, BrokerId
from sparklog.model.loops import Loop
from sparklog.model.zookeeper import Node, ZooKeeper
from sparklog.zookeeper.node_watch import watch_node


def watch_registration(
    zookeeper: ZooKeeper, broker: BrokerId, epoch: BrokerEpoch, lost: Callable[[str], None]
) -> Loop:
    """Call ``lost`` once with the reason when the registration of ``epoch`` exists no more, and end."""

    def look(node: Node | None) -> bool:
        if node is not None and node.stat.czxid == epoch:
            return True
        lost(f"its registration of epoch {epoch} was taken away: others may lead instead")
        return False

    return watch_node(zookeeper, broker_path(broker), look)
