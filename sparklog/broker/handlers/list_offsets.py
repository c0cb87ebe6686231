"""ListOffsets: a log's ends, or the first offset at or after a timestamp.

"Latest" is the high watermark for consumers, the last stable offset for read-committed consumers, and the
log's end for followers (and for tools, which ask as replica -2). Nothing at or beyond it is found by time.
Right after a failover a leader may not know which records its predecessors committed. It answers
OFFSET_NOT_AVAILABLE then (KIP-207), because the offset could go backwards.

A follower that asks for the log's start may begin its own log there, and so gets the states of producers
before that offset; and if a remote store has what is before it, where that begins, and its epochs. With a
remote store a log has two starts: "earliest" is the one of the whole log, "earliest local" that of what is on
the leader's disk.
"""

from dataclasses import dataclass

from sparklog.broker.call import Call
from sparklog.broker.partition.partition import Partition
from sparklog.core.replication.epoch_history import EarlierHistory
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


@dataclass(slots=True)
class Found:
    """What was found for a partition; -1 for offset and timestamp: no such record.

    The epoch is that in which the offset was looked up: another epoch may begin before the answer is written.
    ``producers`` and ``history`` are for followers: what lies before a start.
    """

    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1
    producers: ProducerStates | None = None
    history: EarlierHistory | None = None


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
    history = found.history
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        old_style_offsets=[] if found.offset < 0 else [found.offset],
        offset=found.offset,
        timestamp=found.timestamp,
        leader_epoch=found.leader_epoch if found.offset >= 0 else -1,
        producers=handed_on(found.producers),
        log_start_offset=-1 if history is None else history.log_start_offset,
        epochs=() if history is None else tuple(number for entry in history.epochs for number in entry),
    )


def _look_up(
    partition: Partition, asked: ListOffsetsPartition, request: ListOffsetsRequest, *, is_alone: bool
) -> Found | ErrorCode:
    replica_id, visibility = request.replica_id, Visibility.LOG_END
    if replica_id == CONSUMER:
        visibility = Visibility.of_consumer(read_committed=request.isolation_level == READ_COMMITTED)
    found = Found()

    def choose(leader: Leader, log: Log) -> int | None:
        found.leader_epoch = leader.leader_epoch
        if asked.timestamp == LATEST_TIMESTAMP:
            return leader.latest_offset(visibility)
        if asked.timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            is_local = asked.timestamp == EARLIEST_LOCAL_TIMESTAMP
            start = leader.marks.local_start_offset if is_local else leader.marks.log_start_offset
            if is_alone and replica_id >= 0 and replica_id in leader.followers:
                found.producers, found.history = log.producers.before(start), log.history_before(start)
            return start
        record = log.max_timestamp() if asked.timestamp == MAX_TIMESTAMP else None
        if asked.timestamp >= 0:
            record = log.offset_for_timestamp(asked.timestamp)
        if record is None or record[0] >= leader.marks.readable_end(visibility):
            return -1
        found.timestamp = record[1]
        return record[0]

    offset = partition.leader_offset(asked.current_leader_epoch, choose)
    if isinstance(offset, ErrorCode):
        return offset
    found.offset = offset
    return found


def _error(asked: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=error)
