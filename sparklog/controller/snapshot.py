"""Reading the whole cluster state from ZooKeeper, as a new controller does, and the live brokers alone.

The reads are many, and no transaction. That is safe because the controller's writes check again what they
rely on: partition states and producer ids by their versions, brokers by their incarnations. Only the
controller writes the rest.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from sparklog.core.controller.state.acl_nodes import AclNode, acl_node
from sparklog.core.controller.state.applications import (
    APPLICATIONS,
    KNOWN_BROKERS,
    Application,
    KnownBroker,
    decode_application,
    decode_known,
    known_broker_path,
)
from sparklog.core.controller.state.image import ClusterSnapshot, EntityNode, LiveBroker, TopicSnapshot
from sparklog.core.controller.state.operations import (
    OPERATIONS,
    Operation,
    decode_operation,
    operation_path,
)
from sparklog.core.controller.state.znodes import (
    BROKER_CONFIGS,
    BROKER_IDS,
    BROKER_INCARNATIONS,
    DELETE_TOPICS,
    EVERY_BROKER,
    PRODUCER_ID_BLOCK,
    TOPICS,
    TopicNode,
    broker_config_path,
    broker_path,
    decode_broker,
    decode_configs,
    decode_incarnation,
    decode_producer_id_block,
    decode_state,
    decode_topic,
    incarnation_path,
    schema_path,
    state_path,
    topic_config_path,
    topic_path,
)
from sparklog.core.security.acl import ResourceType
from sparklog.core.security.rule_nodes import rules_path, type_path
from sparklog.core.security.rules import Pattern, PatternType
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.errors import SparklogError
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, TopicId
from sparklog.model.zookeeper import Node, ZooKeeper
from sparklog.zookeeper.entity_configs import read_entity_nodes

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


def read_registered(zookeeper: ZooKeeper) -> frozenset[BrokerId]:
    """All brokers that ever registered: the incarnation outlives the registration."""
    return frozenset(BrokerId(int(name)) for name in zookeeper.children(BROKER_INCARNATIONS))


def read_applications(zookeeper: ZooKeeper) -> tuple[Application, ...]:
    """The applications that run now. What another release wrote, and cannot be read, is left out."""
    found = []
    names = sorted(zookeeper.children(APPLICATIONS))
    nodes = zookeeper.get_many([f"{APPLICATIONS}/{name}" for name in names])
    for name, node in zip(names, nodes, strict=True):
        try:
            found += [] if node is None else [decode_application(name, node.data)]
        except SparklogError as error:
            logger.warning("an application is left out of reports: %s", error)
    return tuple(found)


def _read_known(zookeeper: ZooKeeper) -> dict[BrokerId, KnownBroker]:
    """Every broker that has registered, also before there were nodes of known ones."""
    noted = sorted(BrokerId(int(name)) for name in zookeeper.children(KNOWN_BROKERS))
    nodes = zookeeper.get_many([known_broker_path(broker) for broker in noted])
    return dict.fromkeys(read_registered(zookeeper), KnownBroker()) | {
        broker: decode_known(broker, node.data, node.stat.version)
        for broker, node in zip(noted, nodes, strict=True)
        if node is not None
    }


def _read_operations(zookeeper: ZooKeeper) -> dict[int, Operation]:
    ids = sorted(int(name) for name in zookeeper.children(OPERATIONS))
    nodes = zookeeper.get_many([operation_path(one) for one in ids])
    return {
        one: decode_operation(one, node.data, node.stat.version)
        for one, node in zip(ids, nodes, strict=True)
        if node is not None
    }


def has_withdrawn(zookeeper: ZooKeeper, known: LiveBroker) -> bool:
    """Whether a broker without a registration has ended it by itself, as ``withdraw_suspect`` does: nothing
    else rewrites the record that the registration of this incarnation wrote.
    """
    record = zookeeper.get(incarnation_path(known.broker.id))
    if record is None:
        return False
    stored = decode_incarnation(known.broker.id, record.data, record.stat.version, record.stat.mzxid)
    return stored.broker_epoch == known.broker.epoch and stored.number > known.incarnation.number


def _read_broker(zookeeper: ZooKeeper, broker: BrokerId) -> LiveBroker | None:
    """The registration, read after the record that belongs to it, or None.

    One multi-op writes both nodes, and another one rewrites the record and deletes the registration
    (``withdraw_suspect``). So a registration that matches the record still stood with that record when it was
    read. If they do not match, the broker registered again between the reads. A registration that never
    matches was not made by sparklog. Such a broker proves nothing, and is ignored.
    """
    for _ in range(BROKER_READS_MAX):
        record = zookeeper.get(incarnation_path(broker))
        node = zookeeper.get(broker_path(broker))
        if node is None:
            return None
        if record is None:
            continue
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
    zookeeper: ZooKeeper,
    controller_epoch: ControllerEpoch,
    controller_epoch_version: int,
    *,
    with_acls: bool = False,
) -> ClusterSnapshot:
    """Everything, for the controller of this epoch. ``with_acls``: access rules too."""
    block = zookeeper.get(PRODUCER_ID_BLOCK)
    return ClusterSnapshot(
        controller_epoch=controller_epoch,
        controller_epoch_version=controller_epoch_version,
        brokers=read_brokers(zookeeper),
        topics=_read_topics(zookeeper),
        deletions=frozenset(zookeeper.children(DELETE_TOPICS)),
        producer_block=None if block is None else decode_producer_id_block(block.data),
        producer_block_version=-1 if block is None else block.stat.version,
        broker_configs=_read_broker_configs(zookeeper),
        known=_read_known(zookeeper),
        operations=_read_operations(zookeeper),
        quotas=read_entities(zookeeper),
        acls=read_acls(zookeeper, _patterns(zookeeper)) if with_acls else {},
    )


def _patterns(zookeeper: ZooKeeper) -> list[Pattern]:
    """All patterns that have access rules."""
    return [
        Pattern(resource, name, kind)
        for kind in PatternType
        for resource in ResourceType
        for name in zookeeper.children(type_path(kind, resource))
    ]


def read_acls(zookeeper: ZooKeeper, patterns: Iterable[Pattern]) -> dict[Pattern, AclNode]:
    """The access rules of those of ``patterns`` that have any."""
    named = list(patterns)
    paths = [rules_path(pattern) for pattern in named]
    nodes = zip(named, paths, zookeeper.get_many(paths), strict=True)
    return {pattern: acl_node(path, node) for pattern, path, node in nodes if node is not None}


def _read_broker_configs(zookeeper: ZooKeeper) -> dict[str, dict[str, str]]:
    configs = {}
    for name in zookeeper.children(BROKER_CONFIGS):
        broker = "" if name == EVERY_BROKER else name
        path = broker_config_path(broker)
        node = zookeeper.get(path)
        if node is not None:
            configs[broker] = decode_configs(path, node.data)
    return configs


def read_entities(zookeeper: ZooKeeper) -> dict[str, EntityNode]:
    """Every node below the directories of users, clients and addresses, by its path."""
    return {path: _entity_node(path, node) for path, node in read_entity_nodes(zookeeper).items()}


def _entity_node(path: str, node: Node) -> EntityNode:
    """An empty node has no settings. Nor has one that cannot be read, as another tool may have written it:
    brokers go on, and the next change of it writes it anew.
    """
    configs: dict[str, str] = {}
    if node.data:
        try:
            configs = decode_configs(path, node.data)
        except SparklogError as error:
            logger.error("settings are passed over: %s", error)
    return EntityNode(configs, node.stat.version)


def _read_topics(zookeeper: ZooKeeper) -> tuple[TopicSnapshot, ...]:
    """Read all nodes of a kind together: with thousands of nodes, a round trip for each would take
    seconds.
    """
    names = zookeeper.children(TOPICS)
    nodes = zookeeper.get_many([topic_path(name) for name in names])
    topics = {
        name: decode_topic(name, node.data)
        for name, node in zip(names, nodes, strict=True)
        if node is not None
    }
    config_paths = [topic_config_path(name) for name in topics]
    configs = zip(config_paths, zookeeper.get_many(config_paths), strict=True)
    states = _read_states(zookeeper, topics)
    schemas = _read_schemas(zookeeper, topics.values())
    return tuple(
        TopicSnapshot(
            name,
            topic,
            {} if config is None else decode_configs(path, config.data),
            tuple(islice(states, len(topic.assignments))),
            schemas.get(topic.id, b""),
        )
        for (name, topic), (path, config) in zip(topics.items(), configs, strict=True)
    )


def _read_schemas(zookeeper: ZooKeeper, topics: Iterable[TopicNode]) -> dict[TopicId, bytes]:
    """The documents of typed topics. Raises SparklogError if one is missing."""
    typed = [topic.id for topic in topics if topic.schema_version > 0]
    paths = [schema_path(topic) for topic in typed]
    schemas = {}
    for topic, path, node in zip(typed, paths, zookeeper.get_many(paths), strict=True):
        if node is None:
            raise SparklogError(f"{path} is missing, which has the columns of a topic: restore the node")
        schemas[topic] = node.data
    return schemas


def _read_states(zookeeper: ZooKeeper, topics: Mapping[str, TopicNode]) -> Iterator[PartitionState | None]:
    """The states of each topic's partitions in turn."""
    assigned = [
        (name, number, assignment)
        for name, topic in topics.items()
        for number, assignment in enumerate(topic.assignments)
    ]
    nodes = zookeeper.get_many([state_path(name, number) for name, number, _ in assigned])
    for (name, number, assignment), node in zip(assigned, nodes, strict=True):
        yield (
            None
            if node is None
            else decode_state(name, number, node.data).partition(assignment, node.stat.version)
        )
