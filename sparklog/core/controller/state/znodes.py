"""Where the cluster's state lives in ZooKeeper, and how each node is written.

Paths and JSON follow Kafka's ZooKeeper era, with these additions: ``/brokers/incarnations/N``; in a
partition's state ``isr_incarnations`` and ``eligible``; in ``/controller`` the address of the controller,
which is no broker; ``/login_secret``, of which the salts of unknown users are made; ``/schemas/ID``, the
columns of the typed topic with that id, whose newest version stands in the topic's node. A path is relative
to the chroot of the connection.

Every decoder raises ``SparklogError`` naming the path for bytes that are not what belongs there: state that
cannot be read must stop the reader, never be taken for absent.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sparklog.core.controller.state.applications import APPLICATIONS, KNOWN_BROKERS
from sparklog.core.controller.state.incarnation import Incarnation, LogId, StoredIncarnation
from sparklog.core.controller.state.node_json import bad_node, decode_node, encode_node
from sparklog.core.controller.state.operations import OPERATIONS
from sparklog.core.controller.state.quota_nodes import CLIENT_CONFIGS, IP_CONFIGS, USER_CONFIGS
from sparklog.model.cluster_facts import Broker, Endpoint, PartitionState, SecurityProtocol, plaintext
from sparklog.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch, TopicId

CLUSTER_ID: Final = "/cluster/id"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"
BROKER_INCARNATIONS: Final = "/brokers/incarnations"
BROKER_SUSPECTS: Final = "/brokers/suspects"
TOPICS: Final = "/brokers/topics"
TOPIC_CONFIGS: Final = "/config/topics"
BROKER_CONFIGS: Final = "/config/brokers"
EVERY_BROKER: Final = "<default>"
DELETE_TOPICS: Final = "/admin/delete_topics"
SCHEMAS: Final = "/schemas"
CONFIG_CHANGES: Final = "/config/changes"
LOGIN_SECRET: Final = "/login_secret"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
REMOTE_LOGS: Final = "/remote_logs"
"""What is in a remote store, as partitions' leaders write it."""

PERSISTENT_PATHS: Final = (
    "/cluster",
    BROKER_IDS,
    BROKER_INCARNATIONS,
    BROKER_SUSPECTS,
    KNOWN_BROKERS,
    APPLICATIONS,
    OPERATIONS,
    TOPICS,
    TOPIC_CONFIGS,
    BROKER_CONFIGS,
    USER_CONFIGS,
    CLIENT_CONFIGS,
    IP_CONFIGS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    SCHEMAS,
)
"""Parents that must exist before anything else is written."""


def broker_path(broker: BrokerId) -> str:
    return f"{BROKER_IDS}/{broker}"


def incarnation_path(broker: BrokerId) -> str:
    return f"{BROKER_INCARNATIONS}/{broker}"


def suspects_path(broker: BrokerId) -> str:
    return f"{BROKER_SUSPECTS}/{broker}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    return f"{TOPIC_CONFIGS}/{topic}"


def broker_config_path(broker: str) -> str:
    """``broker`` is an id, or empty for the settings of all brokers."""
    return f"{BROKER_CONFIGS}/{broker or EVERY_BROKER}"


def schema_path(topic: TopicId) -> str:
    return f"{SCHEMAS}/{topic}"


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


# ------------------------------------------------------------------------------------------- cluster id


def encode_cluster_id(cluster_id: str) -> bytes:
    return encode_node({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    try:
        return str(decode_node(CLUSTER_ID, data)["id"])
    except KeyError as error:
        raise bad_node(CLUSTER_ID, data, error) from None


# ------------------------------------------------------------------------------------------- controller


@dataclass(frozen=True, slots=True)
class ControllerNode:
    """The active controller and its address."""

    host: str
    port: int
    pid: int
    application: str
    timestamp_ms: int = 0
    topic_defaults: Mapping[str, str] = field(default_factory=dict)
    """Its settings of topics that name none: other applications compare theirs."""


def encode_controller(node: ControllerNode) -> bytes:
    return encode_node(
        {
            "version": 1,
            "host": node.host,
            "port": node.port,
            "pid": node.pid,
            "application": node.application,
            "timestamp": str(node.timestamp_ms),
            "topic_defaults": dict(node.topic_defaults),
        }
    )


def decode_controller(data: bytes) -> ControllerNode:
    document = decode_node(CONTROLLER, data)
    try:
        return ControllerNode(
            host=str(document["host"]),
            port=int(document["port"]),
            pid=int(document["pid"]),
            application=str(document["application"]),
            timestamp_ms=int(document["timestamp"]),
            topic_defaults={
                str(name): str(value) for name, value in document.get("topic_defaults", {}).items()
            },
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise bad_node(CONTROLLER, data, error) from None


def encode_controller_epoch(epoch: ControllerEpoch) -> bytes:
    return str(int(epoch)).encode()


def decode_controller_epoch(data: bytes) -> ControllerEpoch:
    try:
        return ControllerEpoch(int(data))
    except ValueError as error:
        raise bad_node(CONTROLLER_EPOCH, data, error) from None


# ---------------------------------------------------------------------------------------------- brokers


def encode_broker(broker: Broker, *, timestamp_ms: int = 0) -> bytes:
    """The registration of a broker; its epoch is the node's creation id, never part of the data.

    ``host`` and ``port`` are for readers that know no listeners: the first PLAINTEXT endpoint, as Kafka does.
    """
    in_the_clear = (
        one for one in broker.endpoints.values() if one.security_protocol is SecurityProtocol.PLAINTEXT
    )
    plain = next(in_the_clear, None)
    return encode_node(
        {
            "version": 5,
            "host": None if plain is None else plain.host,
            "port": -1 if plain is None else plain.port,
            "endpoints": [f"{name}://{endpoint}" for name, endpoint in broker.endpoints.items()],
            "listener_security_protocol_map": {
                name: endpoint.security_protocol.name for name, endpoint in broker.endpoints.items()
            },
            "rack": broker.rack,
            "timestamp": str(timestamp_ms),
        }
    )


def decode_broker(broker: BrokerId, data: bytes, epoch: BrokerEpoch) -> Broker:
    """``epoch`` is the ``czxid`` of the node."""
    path = broker_path(broker)
    document = decode_node(path, data)
    try:
        rack = document.get("rack")
        return Broker(
            id=broker,
            endpoints=_endpoints(document),
            epoch=epoch,
            rack=None if rack is None else str(rack),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise bad_node(path, data, error) from None


def _endpoints(document: Mapping[str, Any]) -> dict[str, Endpoint]:
    """The endpoints of a registration, which before version 2 had one host and port (Kafka 0.8), and before
    version 4 no map of protocols: a listener was called as its protocol."""
    if "endpoints" not in document:
        return plaintext(str(document["host"]), int(document["port"]))
    protocols = document.get("listener_security_protocol_map", {})
    endpoints: dict[str, Endpoint] = {}
    for text in document["endpoints"]:
        name, separator, address = text.partition("://")
        host, colon, port = address.rpartition(":")
        if not (separator and colon):
            raise ValueError(f"{text!r} is not NAME://HOST:PORT")
        endpoints[name] = Endpoint(
            host.removeprefix("[").removesuffix("]"), int(port), SecurityProtocol[protocols.get(name, name)]
        )
    return endpoints


def encode_suspects(directories: Iterable[str]) -> bytes:
    return encode_node({"version": 1, "directories": sorted(directories)})


def decode_suspects(broker: BrokerId, data: bytes) -> frozenset[str]:
    path = suspects_path(broker)
    try:
        return frozenset(str(directory) for directory in decode_node(path, data)["directories"])
    except (KeyError, TypeError) as error:
        raise bad_node(path, data, error) from None


def encode_incarnation(record: Incarnation) -> bytes:
    document: dict[str, Any] = {
        "version": 1,
        "directories": list(record.directories),
        "host": record.host_id,
        "boot": record.boot_id,
        "intact_since": record.intact_since,
        "clean": record.clean,
        "suspect": list(record.suspect),
    }
    if record.broker_epoch is not None:
        document["broker_epoch"] = int(record.broker_epoch)
    if record.spared:
        document["spared"] = _by_topic(record.spared)
    document["kept_since"] = record.kept_since
    if record.kept:
        document["kept"] = _by_topic(record.kept)
    if record.unseen:
        document["unseen"] = dict(sorted(record.unseen.items()))
    if record.absent:
        document["absent"] = {one: int(epoch) for one, epoch in sorted(record.absent.items())}
    return encode_node(document)


def _by_topic(incarnations: Mapping[LogId, int]) -> dict[str, dict[str, list[int]]]:
    """By topic and by incarnation, which many share, the partitions."""
    topics: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), since in incarnations.items():
        topics.setdefault(topic.hex, {}).setdefault(str(since), []).append(partition)
    return topics


def _by_log(topics: Mapping[str, Mapping[str, Sequence[int]]]) -> dict[LogId, int]:
    return {
        (TopicId(topic), int(partition)): int(since)
        for topic, incarnations in topics.items()
        for since, partitions in incarnations.items()
        for partition in partitions
    }


def decode_incarnation(broker: BrokerId, data: bytes, version: int, mzxid: int) -> StoredIncarnation:
    """``version`` and ``mzxid`` are those of the node: the number, and the epoch unless the record has it."""
    path = incarnation_path(broker)
    document = decode_node(path, data)
    try:
        epoch = document.get("broker_epoch")
        record = Incarnation(
            directories=tuple(str(directory) for directory in document["directories"]),
            host_id=str(document["host"]),
            boot_id=str(document["boot"]),
            intact_since=int(document["intact_since"]),
            clean=bool(document["clean"]),
            suspect=tuple(str(directory) for directory in document["suspect"]),
            broker_epoch=None if epoch is None else BrokerEpoch(int(epoch)),
            spared=_by_log(document.get("spared", {})),
            unseen={str(one): int(since) for one, since in document.get("unseen", {}).items()},
            absent={str(one): BrokerEpoch(int(epoch)) for one, epoch in document.get("absent", {}).items()},
            # Without the field it is unknown which disks were lost before: all that are not proven.
            kept_since=int(document.get("kept_since", document["intact_since"])),
            kept=_by_log(document.get("kept", {})),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise bad_node(path, data, error) from None
    written_by = BrokerEpoch(mzxid) if record.broker_epoch is None else record.broker_epoch
    return StoredIncarnation(record, version, written_by)


# ----------------------------------------------------------------------------------- topics, partitions


@dataclass(frozen=True, slots=True)
class Assignment:
    """The replicas of one partition; ``adding`` and ``removing`` during a reassignment."""

    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()

    @property
    def target(self) -> tuple[BrokerId, ...]:
        """Where the replicas will be once a reassignment is through."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)


@dataclass(frozen=True, slots=True)
class TopicNode:
    """What ``/brokers/topics/T`` holds: the topic's id, and the replicas of each partition by number.

    ``schema_version`` is the newest version of its columns; 0 if it has none.
    """

    id: TopicId
    assignments: tuple[Assignment, ...]
    schema_version: int = 0


def _ids(values: Sequence[Any]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(int(value)) for value in values)


def encode_topic(node: TopicNode) -> bytes:
    numbered = list(enumerate(node.assignments))
    return encode_node(
        {
            "version": 3,
            "topic_id": str(node.id),
            "partitions": {str(number): list(given.replicas) for number, given in numbered},
            "adding_replicas": {
                str(number): list(given.adding) for number, given in numbered if given.adding
            },
            "removing_replicas": {
                str(number): list(given.removing) for number, given in numbered if given.removing
            },
            **({"schema_version": node.schema_version} if node.schema_version else {}),
        }
    )


def decode_topic(topic: str, data: bytes) -> TopicNode:
    path = topic_path(topic)
    document = decode_node(path, data)
    try:
        replicas = document["partitions"]
        adding, removing = document["adding_replicas"], document["removing_replicas"]
        assignments = tuple(
            Assignment(_ids(replicas[key]), _ids(adding.get(key, ())), _ids(removing.get(key, ())))
            for key in (str(number) for number in range(len(replicas)))
        )
        return TopicNode(uuid.UUID(document["topic_id"]), assignments, int(document.get("schema_version", 0)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise bad_node(path, data, error) from None


@dataclass(frozen=True, slots=True)
class StateNode:
    """What ``…/partitions/P/state`` holds. Its version is the partition epoch."""

    leader: BrokerId
    leader_epoch: LeaderEpoch
    isr: tuple[BrokerId, ...]
    controller_epoch: ControllerEpoch
    isr_incarnations: Mapping[BrokerId, int] = field(default_factory=dict)
    eligible: tuple[BrokerId, ...] = ()
    min_insync_replicas: int = 1
    lost_in_epoch: LeaderEpoch = LeaderEpoch(-1)
    store_given_up_in_epoch: LeaderEpoch = LeaderEpoch(-1)

    def partition(self, assignment: Assignment, partition_epoch: int) -> PartitionState:
        return PartitionState(
            leader=self.leader,
            leader_epoch=self.leader_epoch,
            isr=self.isr,
            replicas=assignment.replicas,
            partition_epoch=partition_epoch,
            adding=assignment.adding,
            removing=assignment.removing,
            eligible=self.eligible,
            isr_incarnations=dict(self.isr_incarnations),
            min_insync_replicas=self.min_insync_replicas,
            lost_in_epoch=self.lost_in_epoch,
            store_given_up_in_epoch=self.store_given_up_in_epoch,
        )


def encode_state(state: PartitionState, controller_epoch: ControllerEpoch) -> bytes:
    document = {
        "version": 1,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": list(state.isr),
        "controller_epoch": controller_epoch,
        "leader_recovery_state": 0,
        "isr_incarnations": {str(member): number for member, number in state.isr_incarnations.items()},
        "eligible": list(state.eligible),
        "min_insync_replicas": state.min_insync_replicas,
        "lost_in_epoch": state.lost_in_epoch,
    }
    if state.store_given_up_in_epoch >= 0:
        document["store_given_up_in_epoch"] = state.store_given_up_in_epoch
    return encode_node(document)


def decode_state(topic: str, partition: int, data: bytes) -> StateNode:
    path = state_path(topic, partition)
    document = decode_node(path, data)
    try:
        incarnations = document["isr_incarnations"]
        return StateNode(
            leader=BrokerId(int(document["leader"])),
            leader_epoch=LeaderEpoch(int(document["leader_epoch"])),
            isr=_ids(document["isr"]),
            controller_epoch=ControllerEpoch(int(document["controller_epoch"])),
            isr_incarnations={BrokerId(int(key)): int(value) for key, value in incarnations.items()},
            eligible=_ids(document["eligible"]),
            min_insync_replicas=int(document.get("min_insync_replicas", 1)),
            lost_in_epoch=LeaderEpoch(int(document.get("lost_in_epoch", -1))),
            store_given_up_in_epoch=LeaderEpoch(int(document.get("store_given_up_in_epoch", -1))),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise bad_node(path, data, error) from None


def encode_configs(configs: Mapping[str, str]) -> bytes:
    """What ``/config/topics/T`` and ``/config/brokers/N`` hold."""
    return encode_node({"version": 1, "config": dict(configs)})


def decode_configs(path: str, data: bytes) -> dict[str, str]:
    document = decode_node(path, data)
    try:
        return {str(name): str(value) for name, value in document["config"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise bad_node(path, data, error) from None


# ----------------------------------------------------------------------------------------- producer ids

PRODUCER_ID_BLOCK_SIZE: Final = 1_000
PRODUCER_ID_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """A run of producer ids that one broker hands out: ``first`` to ``last``, both inclusive."""

    broker: BrokerId
    first: int
    last: int


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    return encode_node(
        {
            "version": 1,
            "broker": block.broker,
            "block_start": str(block.first),
            "block_end": str(block.last),
        }
    )


def decode_producer_id_block(data: bytes) -> ProducerIdBlock:
    document = decode_node(PRODUCER_ID_BLOCK, data)
    try:
        return ProducerIdBlock(
            broker=BrokerId(int(document["broker"])),
            first=int(document["block_start"]),
            last=int(document["block_end"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise bad_node(PRODUCER_ID_BLOCK, data, error) from None
