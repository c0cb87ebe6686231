"""Fetch: batches for consumers, up to the high watermark, and for followers, up to the log's end.

Replies name partitions as they were asked for: by topic name up to version 12, by topic id from 13 on. Every
fetch is sessionless here: answering session id 0 is always legal (KIP-227).
"""

import logging
from collections.abc import Sequence

from sparklog.broker.answers import ReadRequest, ReadResult
from sparklog.broker.call import Call
from sparklog.broker.edge import for_reader
from sparklog.broker.fetch import FetchLimits, Results
from sparklog.broker.partition import Partition
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, BrokerEpoch, BrokerId, TopicPartition
from sparklog.model.parts import Part
from sparklog.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchEpochEndOffset,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)

logger = logging.getLogger(__name__)

FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_OF_STORAGE_ERROR = 6

Wanted = list[tuple[TopicPartition, Partition | None, ReadRequest]]


def handle(call: Call, request: FetchRequest) -> None:
    follower = BrokerId(request.replica_id) if request.replica_id >= 0 else None
    wanted: Wanted = []
    refused: dict[TopicPartition, ErrorCode] = {}
    for topic in request.topics:
        name = _name_of(call, topic)
        for asked in topic.partitions:
            topic_partition = TopicPartition(
                name if name is not None else str(topic.topic_id), asked.partition
            )
            found = _find(call, topic, name, asked.partition)
            if isinstance(found, ErrorCode):
                refused[topic_partition] = found
            else:
                read = _read_request(asked, follower, request.replica_epoch)
                wanted.append((topic_partition, found, read))
    limits = FetchLimits(
        wait_max_ms=0 if refused else request.max_wait_ms,
        bytes_min=request.min_bytes,
        bytes_max=min(request.max_bytes, call.broker.config.get_int("fetch.max.bytes")),
    )
    call.broker.replicas.fetches.fetch(
        wanted,
        limits,
        lambda results: call.carefully(
            lambda: _answer(call, request, results, refused, is_follower=follower is not None)
        ),
    )


def _name_of(call: Call, topic: FetchTopic) -> str | None:
    if call.version < FIRST_VERSION_WITH_TOPIC_IDS:
        return topic.topic
    return call.broker.replicas.topic_name(topic.topic_id) or call.broker.metadata.topic_name(topic.topic_id)


def _find(call: Call, topic: FetchTopic, name: str | None, index: int) -> Partition | ErrorCode:
    if name is None:
        return ErrorCode.unknown_topic_id
    topic_partition = TopicPartition(name, index)
    topic_id = topic.topic_id if topic.topic_id != NO_TOPIC_ID else None
    found = call.broker.replicas.find(topic_partition, topic_id)
    if found is not ErrorCode.unknown_topic_or_partition:
        return found
    if call.broker.metadata.partition(topic_partition) is not None:
        return ErrorCode.not_leader_or_follower
    return found


def _read_request(asked: FetchPartition, follower: BrokerId | None, replica_epoch: int) -> ReadRequest:
    return ReadRequest(
        fetch_offset=asked.fetch_offset,
        max_bytes=asked.partition_max_bytes,
        current_leader_epoch=asked.current_leader_epoch,
        last_fetched_epoch=asked.last_fetched_epoch,
        follower=follower,
        follower_epoch=BrokerEpoch(replica_epoch),
    )


def _answer(
    call: Call,
    request: FetchRequest,
    results: Results,
    refused: dict[TopicPartition, ErrorCode],
    *,
    is_follower: bool,
) -> None:
    response = FetchResponse()
    for topic in request.topics:
        name = _name_of(call, topic)
        answered = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
        for asked in topic.partitions:
            topic_partition = TopicPartition(
                name if name is not None else str(topic.topic_id), asked.partition
            )
            result = results.get(topic_partition)
            if result is None:
                error = refused.get(topic_partition, ErrorCode.unknown_topic_or_partition)
                result = ReadResult(error)
            answered.partitions.append(_partition(call, request, asked.partition, result, is_follower))
        response.responses.append(answered)
    call.reply(response)


def _partition(
    call: Call, request: FetchRequest, index: int, result: ReadResult, is_follower: bool
) -> FetchPartitionData:
    error = result.error
    if error is ErrorCode.kafka_storage_error and call.version < FIRST_VERSION_OF_STORAGE_ERROR:
        error = ErrorCode.not_leader_or_follower
    parts: Sequence[Part] = result.parts
    if not is_follower:
        try:
            parts = for_reader(parts, request.payload_kinds)
        except (OSError, CorruptBatch) as problem:
            logger.error("a batch cannot be given to a plain client: %s", problem)
            parts, error = (), ErrorCode.corrupt_message
    diverging = None
    if result.diverging is not None:
        diverging = FetchEpochEndOffset(epoch=result.diverging.epoch, end_offset=result.diverging.end_offset)
    return FetchPartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.high_watermark,
        log_start_offset=result.log_start_offset,
        aborted_transactions=[] if request.isolation_level == 1 else None,
        records=parts,
        diverging_epoch=diverging,
    )
