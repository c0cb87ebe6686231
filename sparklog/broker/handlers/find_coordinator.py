"""FindCoordinator: the broker that coordinates a group or a transactional id (KIP-699: several keys at once
from version 4 on).

The coordinator of a key leads the key's partition of an internal topic. The first request creates that topic.
COORDINATOR_NOT_AVAILABLE, after which clients ask again, while the topic or its leader is not known here.
"""

from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.coordination.kinds import KINDS, CoordinatorKind
from sparklog.core.coordinator.key_partition import partition_of
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from sparklog.wire.messages.discovery.find_coordinator import (
    GROUP_KEY,
    TRANSACTION_KEY,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

FIRST_BATCHED_VERSION: Final = 4

TOPICS: Final = {GROUP_KEY: GROUP_OFFSETS_TOPIC, TRANSACTION_KEY: TRANSACTION_STATE_TOPIC}
"""The internal topic of each type of key."""

NO_ERROR_MESSAGE: Final = "NONE"
"""The error message of a success before version 4, in Kafka's words."""


def handle(call: Call, request: FindCoordinatorRequest) -> None:
    if call.version >= FIRST_BATCHED_VERSION:
        coordinators = [_find(call, request.key_type, key) for key in request.coordinator_keys]
        call.reply(FindCoordinatorResponse(coordinators=coordinators))
        return
    found = _find(call, request.key_type, request.key)
    call.reply(
        FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.error_message or NO_ERROR_MESSAGE,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )
    )


def _find(call: Call, key_type: int, key: str) -> Coordinator:
    topic = TOPICS.get(key_type)
    if topic is None:
        message = f"unknown coordinator type {key_type}: it is 0 for a group, 1 for a transactional id"
        return Coordinator(key=key, error_code=ErrorCode.invalid_request, error_message=message)
    kind = KINDS[topic]
    node = _leader(call, kind, key)
    if node is None:
        message = f"the coordinator of {kind.what} is not available yet; ask again"
        return Coordinator(key=key, error_code=ErrorCode.coordinator_not_available, error_message=message)
    return Coordinator(key=key, error_message="", node_id=node.id, host=node.host, port=node.port)


def _leader(call: Call, kind: CoordinatorKind, key: str) -> Node | None:
    """The leader of the key's partition, for a client of this listener; None if it is not known."""
    metadata = call.broker.metadata
    topic = metadata.topic(kind.topic)
    if topic is None:
        if metadata.is_received:
            call.broker.internal_topics.create(kind)
        return None
    state = topic.partitions.get(partition_of(key, len(topic.partitions)))
    return None if state is None else metadata.node(state.leader, call.context.listener)
