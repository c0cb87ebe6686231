"""ListOffsets: a log's ends, or the first offset at or after a timestamp.

"Latest" is the high watermark for consumers, the last stable offset for read-committed consumers, and the
log's end for followers (and for tools, which ask as replica -2). Nothing at or beyond it is found by time.
Right after a failover a leader may not know which records its predecessors committed. It answers
OFFSET_NOT_AVAILABLE then (KIP-207), because the offset could go backwards.

A follower that asks for the log's start may begin its own log there, and so gets the states of producers
before that offset.
"""

from sparklog.broker.call import Call
from sparklog.broker.partition.partition import Partition
from sparklog.core.replication.leader import Leader
from sparklog.core.replication.visibility import Visibility
from sparklog.core.transaction.producer_state import ProducerStates, handed_on
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.kafka_numbers import ISOLATION_LEVELS, READ_COMMITTED
from sparklog.storage.log import Log
from sparklog.wire.messages.data.list_offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

CONSUMER = -1
FIRST_VERSION_OF_NOT_AVAILABLE = 5
FIRST_VERSION_OF_TIMESTAMP = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL_TIMESTAMP: 8}


def handle(call: Call, request: ListOffsetsRequest) -> None:
    call.reply(
        ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[_partition(call, request, topic.name, asked) for asked in topic.partitions],
                )
                for topic in request.topics
            ]
        )
    )


def _partition(
    call: Call, request: ListOffsetsRequest, topic: str, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    if request.isolation_level not in ISOLATION_LEVELS:
        return _error(asked, ErrorCode.invalid_request)
    is_known = asked.timestamp >= EARLIEST_LOCAL_TIMESTAMP
    if not is_known or call.version < FIRST_VERSION_OF_TIMESTAMP.get(asked.timestamp, 0):
        return _error(asked, ErrorCode.unsupported_version)
    partition = call.partition(TopicPartition(topic, asked.partition_index))
    if isinstance(partition, ErrorCode):
        return _error(asked, partition)
    is_alone = len(request.topics) == 1 == len(request.topics[0].partitions)
    found = _look_up(partition, asked, request, is_alone=is_alone)
    if isinstance(found, ErrorCode):
        if found is ErrorCode.offset_not_available and call.version < FIRST_VERSION_OF_NOT_AVAILABLE:
            found = ErrorCode.leader_not_available
        return _error(asked, found)
    offset, timestamp, leader_epoch, producers = found
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        old_style_offsets=[] if offset < 0 else [offset],
        offset=offset,
        timestamp=timestamp,
        leader_epoch=leader_epoch if offset >= 0 else -1,
        producers=handed_on(producers),
    )


def _look_up(
    partition: Partition, asked: ListOffsetsPartition, request: ListOffsetsRequest, *, is_alone: bool
) -> tuple[int, int, int, ProducerStates | None] | ErrorCode:
    """(offset, timestamp, leader epoch, producers before); -1 for offset and timestamp: no such record.

    The epoch is that in which the offset was looked up: another epoch may begin before the answer is written.
    """
    replica_id, visibility = request.replica_id, Visibility.LOG_END
    if replica_id == CONSUMER:
        visibility = Visibility.of_consumer(read_committed=request.isolation_level == READ_COMMITTED)
    timestamp = leader_epoch = -1
    producers = None

    def choose(leader: Leader, log: Log) -> int | None:
        nonlocal timestamp, leader_epoch, producers
        leader_epoch = leader.leader_epoch
        if asked.timestamp == LATEST_TIMESTAMP:
            return leader.latest_offset(visibility)
        if asked.timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            if is_alone and replica_id >= 0 and replica_id in leader.followers:
                producers = log.producers.before(leader.marks.log_start_offset)
            return leader.marks.log_start_offset
        found = log.max_timestamp() if asked.timestamp == MAX_TIMESTAMP else None
        if asked.timestamp >= 0:
            found = log.offset_for_timestamp(asked.timestamp)
        if found is None or found[0] >= leader.marks.readable_end(visibility):
            return -1
        timestamp = found[1]
        return found[0]

    offset = partition.leader_offset(asked.current_leader_epoch, choose)
    return offset if isinstance(offset, ErrorCode) else (offset, timestamp, leader_epoch, producers)


def _error(asked: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)
