"""New topics checked, placed and written, with Kafka's rules and error messages.

One multi-op creates the topic's settings, its columns, its node and the states of its partitions: a topic
exists whole or not at all. Only for a very large topic further writes follow: the controller, or its
successor, finds partitions without a state, and creates it.
"""

from collections.abc import Mapping
from typing import Final

from sparklog.core.controller.commands.topic_commands import TopicResult, TopicToCreate
from sparklog.core.controller.leaders.partition_writes import create_states
from sparklog.core.controller.state.image import Change, ClusterImage, TopicCreated
from sparklog.core.controller.state.write_size import (
    WRITE_BYTES_MAX,
    bytes_of,
    check_configs,
    check_topic_node,
)
from sparklog.core.controller.state.znodes import (
    Assignment,
    TopicNode,
    encode_configs,
    encode_topic,
    partitions_path,
    schema_path,
    topic_config_path,
    topic_path,
)
from sparklog.core.controller.steps import CreateTopic, Decision
from sparklog.core.controller.topics.assignment import Placement, place
from sparklog.core.controller.topics.config_checks import check_topic_values, with_forced_settings
from sparklog.core.controller.topics.typed_topics import schema_of_new, without_schema
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId, collides, topic_name_problem
from sparklog.model.zookeeper import Create, Operation

PARTITIONS_MAX: Final = 100_000
"""Most partitions of one topic; more is taken for a typing error."""


def plan_topic(image: ClusterImage, topic: TopicToCreate) -> tuple[TopicNode, bytes]:
    """The node of the new topic, and its schema. Raises KafkaError with the reason if there can be no such
    topic.
    """
    _check_name(image, topic.name)
    document = schema_of_new(image, topic.name, topic.configs)
    _check_configs(topic.name, without_schema(topic.configs), is_typed=document is not None)
    if topic.assignment:
        if topic.partitions != -1 or topic.replication_factor != -1:
            message = (
                "Both numPartitions or replicationFactor and replicasAssignments were set. "
                "Both cannot be used at the same time."
            )
            raise KafkaError(ErrorCode.invalid_request, message)
        placement = _given_placement(image, topic.assignment)
    else:
        placement = _chosen_placement(image, topic)
    assignments = tuple(Assignment(replicas) for replicas in placement)
    node = TopicNode(topic.id, assignments, 0 if document is None else document.version)
    check_topic_node(topic.name, node)
    if document is None:
        return node, b""
    schema = document.encode()
    size = bytes_of(_topic_nodes(topic, node, schema))
    if size > WRITE_BYTES_MAX:
        message = (
            f"Typed topic '{topic.name}' takes {size} bytes in ZooKeeper, more than {WRITE_BYTES_MAX}; use "
            "fewer partitions, columns or settings."
        )
        raise KafkaError(ErrorCode.invalid_config, message)
    return node, schema


def _check_name(image: ClusterImage, name: str) -> None:
    problem = topic_name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.invalid_topic_exception, problem)
    if image.is_deleting(name):
        message = f"Topic '{name}' is marked for deletion; some of its replicas are still to be removed."
        raise KafkaError(ErrorCode.topic_already_exists, message)
    if name in image.topics:
        raise KafkaError(ErrorCode.topic_already_exists, f"Topic '{name}' already exists.")
    others = sorted(other for other in image.topics if collides(name, other))
    if others:
        message = f"Topic '{name}' collides with existing topics: {', '.join(others)}"
        raise KafkaError(ErrorCode.invalid_topic_exception, message)


def _check_configs(topic: str, configs: Mapping[str, str | None], *, is_typed: bool) -> None:
    unset = sorted(name for name, value in configs.items() if value is None)
    if unset:
        message = f"Null value not supported for topic configs: {', '.join(unset)}"
        raise KafkaError(ErrorCode.invalid_config, message)
    given = {name: value for name, value in configs.items() if value is not None}
    check_configs(topic, encode_configs(given))
    check_topic_values(topic, given, is_typed=is_typed)


def _chosen_placement(image: ClusterImage, topic: TopicToCreate) -> Placement:
    settings = image.config
    partitions = settings.get_int("num.partitions") if topic.partitions == -1 else topic.partitions
    factor = topic.replication_factor
    if factor == -1:
        factor = settings.get_int("default.replication.factor")
    if partitions > PARTITIONS_MAX:
        message = f"Number of partitions {partitions} is larger than {PARTITIONS_MAX}."
        raise KafkaError(ErrorCode.invalid_partitions, message)
    brokers = [broker for broker in image.live_brokers() if image.takes_replicas(broker.id)]
    return place(brokers, partitions=partitions, replication_factor=factor, seed=topic.id.int)


def _given_placement(image: ClusterImage, assignment: Mapping[int, tuple[BrokerId, ...]]) -> Placement:
    if sorted(assignment) != list(range(len(assignment))):
        message = (
            f"partitions should be a consecutive 0-based integer sequence, not {sorted(assignment)[:20]}"
        )
        raise KafkaError(ErrorCode.invalid_replica_assignment, message)
    check_placement(image, assignment)
    return tuple(tuple(assignment[partition]) for partition in range(len(assignment)))


def check_placement(image: ClusterImage, assignment: Mapping[int, tuple[BrokerId, ...]]) -> None:
    """Raises KafkaError for replicas that are missing, named twice, or on brokers that are not alive."""
    for partition, replicas in assignment.items():
        if not replicas or len(set(replicas)) < len(replicas):
            message = f"replicas of partition {partition} are missing or named twice: {list(replicas)}"
            raise KafkaError(ErrorCode.invalid_replica_assignment, message)
        unknown = sorted(set(replicas) - image.brokers.keys())
        if unknown:
            message = f"partition {partition} is assigned to brokers that are not alive: {unknown}"
            raise KafkaError(ErrorCode.invalid_replica_assignment, message)


def new_configs(topic: TopicToCreate, node: TopicNode) -> dict[str, str]:
    """The settings that the topic begins with."""
    kept = without_schema(topic.configs)
    given = {name: value for name, value in kept.items() if value is not None}
    return with_forced_settings(topic.name, given, is_typed=node.schema_version > 0)


def _topic_nodes(topic: TopicToCreate, node: TopicNode, schema: bytes) -> list[Operation]:
    operations: list[Operation] = [
        Create(topic_config_path(topic.name), encode_configs(new_configs(topic, node))),
        Create(topic_path(topic.name), encode_topic(node)),
        Create(partitions_path(topic.name)),
    ]
    return [*operations, Create(schema_path(node.id), schema)] if schema else operations


def created(topic: TopicToCreate, node: TopicNode) -> TopicResult:
    """The answer for a topic that was, or could be, created."""
    return TopicResult(
        topic.name,
        id=topic.id,
        partitions=len(node.assignments),
        replication_factor=len(node.assignments[0].replicas),
        configs=new_configs(topic, node),
    )


def decide_topic(image: ClusterImage, step: CreateTopic) -> Decision | TopicResult:
    """What to write, or the answer if there is nothing to write."""
    name = step.topic.name
    existing = image.topics.get(name)
    if existing is not None and existing.id == step.topic.id:
        return created(step.topic, step.node)  # an earlier try succeeded unseen
    try:
        _check_name(image, name)
    except KafkaError as error:
        return TopicResult(name, error.code, error.message)
    operations = _topic_nodes(step.topic, step.node, step.schema)
    configs = new_configs(step.topic, step.node)
    changes: list[Change] = [TopicCreated(name, step.node, configs, step.schema)]
    rules = image.rules(configs)
    room_bytes = WRITE_BYTES_MAX - bytes_of(operations)
    states, created_ones = create_states(image, name, enumerate(step.node.assignments), rules, room_bytes)
    return Decision(step, (*operations, *states), (*changes, *created_ones))
