"""How large a write to ZooKeeper may be.

ZooKeeper drops the connection of whoever sends more than a megabyte (``jute.maxbuffer``), without a word. To
the controller that looks like a lost answer: it would try again, in vain, and resign, and its successor after
it. So what cannot be written is refused to whoever asks for it, and much of what can is cut into several
writes.
"""

from collections.abc import Iterable
from typing import Final

from sparklog.core.controller.state.znodes import Assignment, TopicNode, encode_topic
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId
from sparklog.model.zookeeper import Create, Operation, SetData

WRITE_BYTES_MAX: Final = 800_000
"""Of one multi-op."""

TOPIC_BYTES_MAX: Final = 500_000
"""Of the node of a topic, when it is made and when it grows."""

MOVING_TOPIC_BYTES_MAX: Final = 750_000
"""Of the node of a topic with moves under way: these are named in it."""

CONFIGS_BYTES_MAX: Final = 250_000
"""Of the settings of one topic or broker; every broker is told them."""

_OPERATION_BYTES: Final = 60
_NODE_BYTES: Final = 160
_ENTRY_BYTES: Final = 12
_STATE_BYTES: Final = 420
"""What each takes beside what is counted."""


def bytes_of(operations: Iterable[Operation]) -> int:
    """About what they take in a message."""
    total = 0
    for one in operations:
        data = len(one.data) if isinstance(one, Create | SetData) else 0
        total += len(one.path) + data + _OPERATION_BYTES
    return total


def bytes_of_state(name: str, assignment: Assignment) -> int:
    """No less than the write of a partition's state, for names of any length; each member is named thrice."""
    members = len(assignment.replicas)
    return 2 * (len(name) + _OPERATION_BYTES) + _STATE_BYTES + 3 * members * 8


def bytes_of_node(assignments: Iterable[Assignment], brokers: Iterable[BrokerId]) -> int:
    """No less than the node of a topic, far quicker than encoding it. ``brokers`` may be named in it."""
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
