"""Metadata: brokers, topics and leaders, from the controller's last update.

The brokers of an answer are those that have the listener through which the request came, at the addresses
that they advertise for it. A leader without that listener is LISTENER_NOT_FOUND. A leader that may have ended
is LEADER_NOT_AVAILABLE (``doubted_leaders``). Brokers that left a moment ago are listed too
(``departed_brokers``).

An unknown topic is created when the client allows it and ``auto.create.topics.enable`` is on; the
answer is then LEADER_NOT_AVAILABLE, and clients ask again. The "controller" of the reply is a live broker,
because clients send their admin requests there and every broker forwards them.
"""

import logging
from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.coordination.internal_topic_creation import creatable
from sparklog.broker.coordination.kinds import KINDS
from sparklog.broker.forwarding import ask_controller
from sparklog.broker.metadata.metadata_cache import CachedTopic, MetadataSnapshot
from sparklog.core.security.acl import ResourceType
from sparklog.model.cluster_facts import Node, PartitionState
from sparklog.model.errors import ErrorCode, KafkaError, WireError
from sparklog.model.ids import NO_TOPIC_ID, BrokerId, TopicId, topic_name_problem
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.wire.codec import encode_request
from sparklog.wire.framing import FRAME_PREFIX
from sparklog.wire.messages.admin.create_topics import CreatableTopic, CreateTopicsRequest
from sparklog.wire.messages.discovery.metadata import (
    OPERATIONS_OMITTED,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from sparklog.wire.versions import KNOWN_VERSIONS

logger: Final = logging.getLogger(__name__)

AUTO_CREATE_TIMEOUT_MS = 5_000
FIRST_VERSION_THAT_ASKS_TO_CREATE = 4
FIRST_VERSION_OF_NULL_NAMES = 12
FIRST_VERSION_WITH_LISTENER_NOT_FOUND = 6


def handle(call: Call, request: MetadataRequest) -> None:
    if _creates(call, request):
        call.broker.waiting_room.submit(lambda: call.carefully(lambda: _answer(call, request)))
    else:
        _answer(call, request)


def _creates(call: Call, request: MetadataRequest) -> bool:
    """Whether topics must be created first, for which the controller is waited for."""
    if not _may_create(call, request):
        return False
    known = call.broker.metadata.snapshot.topics
    return any(not _is_by_id(asked) and asked.name not in known for asked in request.topics or [])


def _is_by_id(asked: MetadataRequestTopic) -> bool:
    """Whether the topic id counts, and not the name: Java's admin client sends an empty name too."""
    return asked.name is None or asked.topic_id != NO_TOPIC_ID


def _may_create(call: Call, request: MetadataRequest) -> bool:
    asks = request.allow_auto_topic_creation or call.version < FIRST_VERSION_THAT_ASKS_TO_CREATE
    return asks and call.broker.config.get_bool("auto.create.topics.enable")


def _answer(call: Call, request: MetadataRequest) -> None:
    snapshot = call.broker.metadata.snapshot
    nodes = snapshot.nodes(call.context.listener)
    wants_all = request.topics is None or (call.version == 0 and not request.topics)
    if wants_all:
        topics = [_topic(call, snapshot, topic) for topic in snapshot.topics.values()]
    else:
        each_once = {(asked.name, asked.topic_id): asked for asked in request.topics or []}
        topics = [_asked(call, snapshot, asked, request) for asked in each_once.values()]
    if request.include_topic_authorized_operations:
        for one in topics:
            if one.name is not None:  # also of a topic that is not there
                one.topic_authorized_operations = call.operations(ResourceType.topic, one.name)
    call.reply(
        MetadataResponse(
            brokers=[_broker(node) for node in nodes.values()] + _departed(call, snapshot),
            cluster_id=call.broker.cluster_id,
            controller_id=min(nodes, default=-1),
            topics=topics,
            cluster_authorized_operations=(
                call.cluster_operations()
                if request.include_cluster_authorized_operations
                else OPERATIONS_OMITTED
            ),
        )
    )


def _departed(call: Call, snapshot: MetadataSnapshot) -> list[MetadataResponseBroker]:
    departed = call.broker.departed_brokers.now(snapshot.brokers)
    nodes = (broker.node(call.context.listener) for broker in departed)
    return [_broker(node, has_left=1) for node in nodes if node is not None]


def _broker(node: Node, has_left: int = 0) -> MetadataResponseBroker:
    return MetadataResponseBroker(
        node_id=node.id, host=node.host, port=node.port, rack=node.rack, has_left=has_left
    )


def _asked(
    call: Call, snapshot: MetadataSnapshot, asked: MetadataRequestTopic, request: MetadataRequest
) -> MetadataResponseTopic:
    name = snapshot.names.get(asked.topic_id) if _is_by_id(asked) else asked.name
    if name is None:
        nameless = None if call.version >= FIRST_VERSION_OF_NULL_NAMES else ""
        return _unknown(nameless, asked.topic_id, ErrorCode.unknown_topic_id)
    topic = snapshot.topics.get(name)
    if topic is not None:
        return _topic(call, snapshot, topic)
    if topic_name_problem(name) is not None:
        return _unknown(name, asked.topic_id, ErrorCode.invalid_topic_exception)
    if _may_create(call, request):
        return _unknown(name, NO_TOPIC_ID, _create(call, name))
    return _unknown(name, NO_TOPIC_ID, ErrorCode.unknown_topic_or_partition)


TRIED_AGAIN: Final = frozenset(
    {
        ErrorCode.none,
        ErrorCode.topic_already_exists,
        ErrorCode.request_timed_out,
        ErrorCode.throttling_quota_exceeded,
    }
)
"""Outcomes of a creation after which a client asks for the topic again; all clients do on one error code."""


def _create(call: Call, name: str) -> ErrorCode:
    """Create the topic in the name of the client that asked for it.

    An internal topic is created as its coordinators create it.
    """
    kind = KINDS.get(name)
    topic = CreatableTopic(name=name) if kind is None else creatable(kind.new_topic(call.broker.config))
    request = CreateTopicsRequest(topics=[topic], timeout_ms=AUTO_CREATE_TIMEOUT_MS)
    version = KNOWN_VERSIONS[request.API_KEY].max
    frame = encode_request(request, version, call.header.correlation_id, call.header.client_id)
    try:
        response = ask_controller(call, frame[FRAME_PREFIX.size :], AUTO_CREATE_TIMEOUT_MS)
    except (OSError, WireError, KafkaError) as problem:
        logger.info("topic %s could not be created automatically: %s", name, problem)
        return ErrorCode.leader_not_available
    error = ErrorCode(response.topics[0].error_code)
    return ErrorCode.leader_not_available if error in TRIED_AGAIN else error


def _unknown(name: str | None, topic_id: TopicId, error: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error, name=name, topic_id=topic_id, is_internal=name in INTERNAL_TOPICS
    )


def _topic(call: Call, snapshot: MetadataSnapshot, topic: CachedTopic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        schema_version=topic.schema_version,
        partitions=[
            _partition(call, snapshot, topic, index, state)
            for index, state in sorted(topic.partitions.items())
        ],
    )


def _partition(
    call: Call, snapshot: MetadataSnapshot, topic: CachedTopic, index: int, state: PartitionState
) -> MetadataResponsePartition:
    error = _leader_error(call, snapshot, state.leader)
    offline = {*topic.offline.get(index, ()), *(r for r in state.replicas if r not in snapshot.brokers)}
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=state.leader if error is ErrorCode.none else -1,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        offline_replicas=sorted(offline),
        lost_in_epoch=state.lost_in_epoch,
    )


def _leader_error(call: Call, snapshot: MetadataSnapshot, leader: BrokerId) -> ErrorCode:
    """Why a client of this listener cannot reach ``leader``; ``none`` if it can."""
    broker = snapshot.brokers.get(leader)
    if broker is None or call.broker.doubted_leaders.has(leader, broker.epoch):
        return ErrorCode.leader_not_available
    if call.context.listener in broker.endpoints:
        return ErrorCode.none
    if call.version < FIRST_VERSION_WITH_LISTENER_NOT_FOUND:
        return ErrorCode.leader_not_available
    return ErrorCode.listener_not_found
