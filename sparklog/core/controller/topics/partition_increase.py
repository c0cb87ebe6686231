"""Additional partitions of a topic, with Kafka's rules and error messages.

One multi-op writes the topic's node and the states of the new partitions. For a very large increase further
writes follow: the controller, or its successor, finds partitions without a state, and creates it.
"""

from dataclasses import replace

from sparklog.core.controller.commands.topic_commands import Increase, TopicResult
from sparklog.core.controller.leaders.partition_writes import create_states
from sparklog.core.controller.state.image import AssignmentsChanged, Change, ClusterImage, TopicImage
from sparklog.core.controller.state.write_size import WRITE_BYTES_MAX, bytes_of, check_topic_node
from sparklog.core.controller.state.znodes import Assignment, TopicNode, encode_topic, topic_path
from sparklog.core.controller.steps import AddPartitions, Decision
from sparklog.core.controller.topics.assignment import Placement, place
from sparklog.core.controller.topics.topic_creation import PARTITIONS_MAX, check_placement
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.model.zookeeper import ANY_VERSION, Operation, SetData


def plan_increase(image: ClusterImage, increase: Increase) -> TopicNode:
    """The topic's node afterwards. Raises KafkaError with the reason if it is impossible."""
    topic = _find(image, increase.topic)
    existing = topic.node.assignments
    added = _count_added(increase, len(existing))
    if increase.assignment is None:
        placement = _chosen(image, topic, added)
    else:
        placement = _given(image, increase, added, len(existing))
    added_ones = (Assignment(replicas) for replicas in placement)
    node = replace(topic.node, assignments=(*existing, *added_ones))
    check_topic_node(increase.topic, node)
    return node


def _find(image: ClusterImage, name: str) -> TopicImage:
    topic = image.topics.get(name)
    if topic is None or image.is_deleting(name):
        raise KafkaError(ErrorCode.unknown_topic_or_partition, f"The topic '{name}' does not exist.")
    if name in INTERNAL_TOPICS:
        message = (
            f"The number of partitions of internal topic '{name}' cannot be changed: coordinators would look "
            "for what it holds in other partitions."
        )
        raise KafkaError(ErrorCode.invalid_partitions, message)
    moving = [number for number, one in enumerate(topic.node.assignments) if one.adding or one.removing]
    if moving:
        message = (
            f"Topic '{name}' has partitions that are being reassigned ({moving[:20]}); wait for that to end, "
            "or cancel it, before you add partitions."
        )
        raise KafkaError(ErrorCode.reassignment_in_progress, message)
    return topic


def _count_added(increase: Increase, existing: int) -> int:
    if increase.count == existing:
        raise KafkaError(ErrorCode.invalid_partitions, f"Topic already has {existing} partitions.")
    if increase.count < existing:
        message = (
            f"Topic currently has {existing} partitions, which is higher than the requested "
            f"{increase.count}; partitions cannot be taken away."
        )
        raise KafkaError(ErrorCode.invalid_partitions, message)
    if increase.count > PARTITIONS_MAX:
        message = f"Number of partitions {increase.count} is larger than {PARTITIONS_MAX}."
        raise KafkaError(ErrorCode.invalid_partitions, message)
    return increase.count - existing


def _chosen(image: ClusterImage, topic: TopicImage, added: int) -> Placement:
    """The placement as if the topic had been created with these partitions: the round robin goes on."""
    existing = topic.node.assignments
    factor = len(existing[0].target)
    brokers = [broker for broker in image.live_brokers() if image.takes_replicas(broker.id)]
    whole = place(brokers, partitions=len(existing) + added, replication_factor=factor, seed=topic.id.int)
    return whole[len(existing) :]


def _given(image: ClusterImage, increase: Increase, added: int, existing: int) -> Placement:
    assert increase.assignment is not None
    if len(increase.assignment) != added:
        message = (
            f"Increasing the number of partitions by {added} but {len(increase.assignment)} assignments "
            "provided."
        )
        raise KafkaError(ErrorCode.invalid_replica_assignment, message)
    assignment = dict(enumerate(increase.assignment, start=existing))
    check_placement(image, assignment)
    factor = len(image.topics[increase.topic].node.assignments[0].target)
    for partition, replicas in assignment.items():
        if len(replicas) != factor:
            message = (
                f"Existing partitions have {factor} replicas, but partition {partition} is given "
                f"{len(replicas)}."
            )
            raise KafkaError(ErrorCode.invalid_replica_assignment, message)
    return increase.assignment


def increased(image: ClusterImage, name: str) -> TopicResult:
    topic = image.topics[name]
    return TopicResult(name, id=topic.id, partitions=len(topic.node.assignments))


def decide_increase(image: ClusterImage, step: AddPartitions) -> Decision | TopicResult:
    """What to write, or the answer if there is nothing to write."""
    name = step.topic
    topic = image.topics.get(name)
    if topic is None or image.is_deleting(name) or topic.id != step.node.id:
        message = f"The topic '{name}' was deleted meanwhile."
        return TopicResult(name, ErrorCode.unknown_topic_or_partition, message)
    node = replace(topic.node, assignments=step.node.assignments)  # its columns may have changed since
    if topic.node == node:
        return increased(image, name)  # an earlier try succeeded unseen
    existing = len(topic.node.assignments)
    if node.assignments[:existing] != topic.node.assignments:
        message = f"The assignment of topic '{name}' has changed meanwhile; try again."
        return TopicResult(name, ErrorCode.invalid_request, message)
    operations: list[Operation] = [SetData(topic_path(name), encode_topic(node), ANY_VERSION)]
    changes: list[Change] = [AssignmentsChanged(name, node)]
    added = list(enumerate(node.assignments))[existing:]
    room_bytes = WRITE_BYTES_MAX - bytes_of(operations)
    states, created = create_states(image, name, added, topic.rules, room_bytes)
    return Decision(step, (*operations, *states), (*changes, *created))
