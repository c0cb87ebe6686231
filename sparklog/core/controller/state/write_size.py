"""Limits of the size of a write to ZooKeeper.

ZooKeeper closes a connection without an answer when a request exceeds a megabyte (``jute.maxbuffer``). The
controller would take that for a lost answer, retry in vain, and resign, as would its successor. Commands
whose node would be too large are therefore refused, and large sets of changes are split into several writes.
"""

from collections.abc import Iterable
from typing import Final

from sparklog.core.controller.state.znodes import Assignment, TopicNode, encode_topic
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId
from sparklog.model.zookeeper import Create, Operation, SetData

WRITE_BYTES_MAX: Final = 800_000
"""Limit of one multi-op."""

TOPIC_BYTES_MAX: Final = 500_000
"""Limit of a topic's node when it is created or gets partitions."""

MOVING_TOPIC_BYTES_MAX: Final = 750_000
"""Limit of a topic's node with reassignments in progress, which the node names."""

CONFIGS_BYTES_MAX: Final = 250_000
"""Limit of the settings of one topic or broker, which are sent to every broker."""

_OPERATION_BYTES: Final = 60
_NODE_BYTES: Final = 160
_ENTRY_BYTES: Final = 12
_STATE_BYTES: Final = 420
"""Fixed overhead of each item in bytes."""


def bytes_of(operations: Iterable[Operation]) -> int:
    """The approximate size of ``operations`` in a message."""
    total = 0
    for one in operations:
        data = len(one.data) if isinstance(one, Create | SetData) else 0
        total += len(one.path) + data + _OPERATION_BYTES
    return total


def bytes_of_state(name: str, assignment: Assignment) -> int:
    """An upper bound of the write of a partition's state, for any name; each member is named three times."""
    members = len(assignment.replicas)
    return 2 * (len(name) + _OPERATION_BYTES) + _STATE_BYTES + 3 * members * 8


def bytes_of_node(assignments: Iterable[Assignment], brokers: Iterable[BrokerId]) -> int:
    """An upper bound of a topic's node, far quicker than encoding it. The node may name ``brokers``."""
    digits = len(str(max(brokers, default=0))) + 1
    return _NODE_BYTES + sum(
        _bytes_of(replicas, digits)
        for one in assignments
        for replicas in (one.replicas, one.adding, one.removing)
    )


def _bytes_of(replicas: tuple[BrokerId, ...], digits: int) -> int:
    return _ENTRY_BYTES + digits * len(replicas) if replicas else 0


def check_topic_node(name: str, node: TopicNode) -> None:
    """Raises KafkaError for a topic that is too large for one node."""
    size = len(encode_topic(node))
    if size > TOPIC_BYTES_MAX:
        message = (
            f"Topic '{name}' with {len(node.assignments)} partitions of "
            f"{len(node.assignments[0].replicas)} replicas takes {size} bytes in ZooKeeper, more than "
            f"{TOPIC_BYTES_MAX}; use fewer partitions, or several topics."
        )
        raise KafkaError(ErrorCode.invalid_partitions, message)


def check_configs(name: str, encoded: bytes) -> None:
    """Raises KafkaError for settings that are too large."""
    if len(encoded) > CONFIGS_BYTES_MAX:
        message = f"The settings of '{name}' take {len(encoded)} bytes, more than {CONFIGS_BYTES_MAX}."
        raise KafkaError(ErrorCode.invalid_config, message)
