"""Reading the whole cluster state from ZooKeeper, as a new controller does, and the live brokers alone.

The reads are many and not one transaction. That is safe because everything a controller decides on is checked
again by its writes: partition states and the producer ids by their versions, brokers by their incarnations.
Only the controller itself writes the rest.
"""

import logging
from typing import Final

from sparklog.core.controller.image import LiveBroker, Snapshot, TopicSnapshot
from sparklog.core.controller.znodes import (
    BROKER_IDS,
    DELETE_TOPICS,
    PRODUCER_ID_BLOCK,
    TOPICS,
    TopicNode,
    broker_path,
    decode_broker,
    decode_incarnation,
    decode_producer_id_block,
    decode_state,
    decode_topic,
    decode_topic_config,
    incarnation_path,
    state_path,
    topic_config_path,
    topic_path,
)
from sparklog.model.cluster import PartitionState
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch
from sparklog.model.zookeeper import ZooKeeper

logger: Final = logging.getLogger(__name__)

BROKER_READS_MAX: Final = 20


def read_brokers(zookeeper: ZooKeeper) -> dict[BrokerId, LiveBroker]:
    """The registered brokers, each with the incarnation that its registration wrote."""
    brokers = {}
    for name in zookeeper.children(BROKER_IDS):
        live = _read_broker(zookeeper, BrokerId(int(name)))
        if live is not None:
            brokers[live.broker.id] = live
    return brokers


def _read_broker(zookeeper: ZooKeeper, broker: BrokerId) -> LiveBroker | None:
    """Both nodes are written by one multi-op; if they do not match, it registered again in between.

    A registration that never matches was not made by sparklog, or not whole: such a broker proves nothing,
    and is treated as if it were not there.
    """
    for _ in range(BROKER_READS_MAX):
        node = zookeeper.get(broker_path(broker))
        if node is None:
            return None
        record = zookeeper.get(incarnation_path(broker))
        if record is None:
            break
        incarnation = decode_incarnation(broker, record.data, record.stat.version, record.stat.mzxid)
        if incarnation.broker_epoch == node.stat.czxid:
            return LiveBroker(decode_broker(broker, node.data, BrokerEpoch(node.stat.czxid)), incarnation)
    logger.error(
        "%s and %s do not belong together: broker %d was registered by other software and is ignored; "
        "give sparklog a ZooKeeper path of its own",
        broker_path(broker),
        incarnation_path(broker),
        broker,
    )
    return None


def read_snapshot(
    zookeeper: ZooKeeper, controller_epoch: ControllerEpoch, controller_epoch_version: int
) -> Snapshot:
    """Everything, for the controller of this epoch."""
    block = zookeeper.get(PRODUCER_ID_BLOCK)
    topics = (_read_topic(zookeeper, name) for name in zookeeper.children(TOPICS))
    return Snapshot(
        controller_epoch=controller_epoch,
        controller_epoch_version=controller_epoch_version,
        brokers=read_brokers(zookeeper),
        topics=tuple(topic for topic in topics if topic is not None),
        deletions=frozenset(zookeeper.children(DELETE_TOPICS)),
        producer_block=None if block is None else decode_producer_id_block(block.data),
        producer_block_version=-1 if block is None else block.stat.version,
    )


def _read_topic(zookeeper: ZooKeeper, name: str) -> TopicSnapshot | None:
    node = zookeeper.get(topic_path(name))
    if node is None:
        return None
    topic = decode_topic(name, node.data)
    configs = zookeeper.get(topic_config_path(name))
    states = tuple(_read_state(zookeeper, name, topic, number) for number in range(len(topic.assignments)))
    return TopicSnapshot(
        name, topic, {} if configs is None else decode_topic_config(name, configs.data), states
    )


def _read_state(zookeeper: ZooKeeper, name: str, topic: TopicNode, number: int) -> PartitionState | None:
    node = zookeeper.get(state_path(name, number))
    if node is None:
        return None
    return decode_state(name, number, node.data).partition(topic.assignments[number], node.stat.version)
