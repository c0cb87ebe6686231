"""ListOffsets: a log's ends, or the first offset at or after a timestamp.

"Latest" is the high watermark for consumers, the last stable offset for read-committed consumers, and the
log's end for followers. Nothing at or beyond it is found by time. A tool that compares replicas asks each of
them as replica -2: followers answer too, of their own logs, up to their ends.

Right after a failover a leader may not know which records its predecessors committed. It answers
OFFSET_NOT_AVAILABLE then (KIP-207), because the offset could go backwards.

A follower that asks for the log's start may begin its own log there, and so gets the states of producers
before that offset; and if a remote store has what is before it, where that begins, and its epochs. With a
remote store a log has two starts: "earliest" is the one of the whole log, "earliest local" that of what is on
the leader's disk.

A consumer that asks for that start also gets what the remote store has, as the leader's copier last saw it. A
leader that waits for the store answers that beside OFFSET_NOT_AVAILABLE, with the reason.

A search by time begins in the remote store, if that has records that are not on disk: the request is parked
until the store has answered. The greatest timestamp is that of the records on disk, as in Kafka.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.partition.answers import HistoryFound, HistoryTime, StoreShare
from sparklog.broker.partition.partition import Partition
from sparklog.core.producers.producer_state import ProducerStates, handed_on
from sparklog.core.replication.epoch_history import EarlierHistory
from sparklog.core.replication.follower import Follower
from sparklog.core.replication.leader import Leader
from sparklog.core.replication.visibility import Visibility
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
DEBUGGER: Final = -2
"""The replica id of tools that ask each replica for itself."""
TIME_SEARCH_MAX_MS: Final = 20_000
"""Longest wait of a search for a remote store; then REQUEST_TIMED_OUT, upon which clients try again."""
FIRST_VERSION_OF_NOT_AVAILABLE = 5
FIRST_VERSION_OF_TIMESTAMP = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL_TIMESTAMP: 8}


@dataclass(slots=True)
class Found:
    """What was found for a partition; -1 for offset and timestamp: no such record.

    The epoch is that in which the offset was looked up: another epoch may begin before the answer is written.
    ``producers`` and ``history`` are for followers: what lies before a start. ``share`` is what the remote
    store has, for those who ask where the log begins on disk. ``time`` is what a remote store
    must be searched for, because its records are before those on disk.
    """

    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1
    producers: ProducerStates | None = None
    history: EarlierHistory | None = None
    share: StoreShare | None = None
    time: HistoryTime | None = None
    error: ErrorCode = ErrorCode.none


def handle(call: Call, request: ListOffsetsRequest) -> None:
    asked = [(topic.name, partition) for topic in request.topics for partition in topic.partitions]
    found = [_find(call, request, topic, partition) for topic, partition in asked]
    times = {nth: one.time for nth, one in enumerate(found) if isinstance(one, Found) and one.time}

    def answer(arrived: Mapping[int, HistoryFound]) -> None:
        late = HistoryFound(ErrorCode.request_timed_out)
        for nth in times:
            found[nth] = _with_history(found[nth], arrived.get(nth, late))
        call.carefully(lambda: call.reply(_response(call, request, found)))

    if not times or not call.broker.fetches.find(times, TIME_SEARCH_MAX_MS, answer):
        call.reply(_response(call, request, found))


def _with_history(found: Found | ErrorCode, record: HistoryFound) -> Found | ErrorCode:
    """What was found in both: the remote store has the earlier records."""
    if record.error is not ErrorCode.none:
        return record.error
    assert isinstance(found, Found), found
    if record.offset >= 0:
        found.offset, found.timestamp = record.offset, record.timestamp_ms
    return found


def _response(
    call: Call, request: ListOffsetsRequest, found: Sequence[Found | ErrorCode]
) -> ListOffsetsResponse:
    answers = iter(found)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_answer(call, asked, next(answers)) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _find(
    call: Call, request: ListOffsetsRequest, topic: str, asked: ListOffsetsPartition
) -> Found | ErrorCode:
    if request.isolation_level not in ISOLATION_LEVELS:
        return ErrorCode.invalid_request
    is_known = asked.timestamp >= EARLIEST_LOCAL_TIMESTAMP
    if not is_known or call.version < FIRST_VERSION_OF_TIMESTAMP.get(asked.timestamp, 0):
        return ErrorCode.unsupported_version
    partition = call.partition(TopicPartition(topic, asked.partition_index))
    if isinstance(partition, ErrorCode):
        return partition
    is_alone = len(request.topics) == 1 == len(request.topics[0].partitions)
    return _look_up(partition, asked, request, is_alone=is_alone)


def _answer(
    call: Call, asked: ListOffsetsPartition, found: Found | ErrorCode
) -> ListOffsetsPartitionResponse:
    if isinstance(found, ErrorCode):
        if found is ErrorCode.offset_not_available and call.version < FIRST_VERSION_OF_NOT_AVAILABLE:
            found = ErrorCode.leader_not_available
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=found)
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
        remote_share=() if found.share is None else found.share.figures,
        remote_trouble="" if found.share is None else found.share.trouble,
        error_code=found.error,
    )


def _look_up(
    partition: Partition, asked: ListOffsetsPartition, request: ListOffsetsRequest, *, is_alone: bool
) -> Found | ErrorCode:
    replica_id, visibility = request.replica_id, Visibility.LOG_END
    if replica_id == CONSUMER:
        visibility = Visibility.of_consumer(read_committed=request.isolation_level == READ_COMMITTED)
    found = Found()

    def choose(role: Leader | Follower, log: Log) -> int | None:
        found.leader_epoch = role.leader_epoch
        if asked.timestamp == LATEST_TIMESTAMP:
            return role.latest_offset(visibility)
        if asked.timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            is_local = asked.timestamp == EARLIEST_LOCAL_TIMESTAMP
            start = role.marks.local_start_offset if is_local else role.marks.log_start_offset
            if is_alone and isinstance(role, Leader) and replica_id in role.followers:
                found.producers, found.history = log.producers_before(start), log.history_before(start)
            return start
        record = log.max_timestamp() if asked.timestamp == MAX_TIMESTAMP else None
        if asked.timestamp >= 0:
            record = log.offset_for_timestamp(asked.timestamp)
            found.time = _time_in_history(role, log, asked.timestamp)
        if record is None or record[0] >= role.marks.readable_end(visibility):
            return -1
        found.timestamp = record[1]
        return record[0]

    look_up = partition.reads.replica_offset if replica_id == DEBUGGER else partition.reads.leader_offset
    offset = look_up(asked.current_leader_epoch, choose)
    if asked.timestamp == EARLIEST_LOCAL_TIMESTAMP and replica_id == CONSUMER:
        found.share = partition.store_share
    if isinstance(offset, ErrorCode):
        if found.share is None or offset is not ErrorCode.offset_not_available:
            return offset
        return Found(share=found.share, error=offset)
    found.offset = offset
    return found


def _time_in_history(role: Leader | Follower, log: Log, timestamp_ms: int) -> HistoryTime | None:
    """What to search for in the remote store; None if that has nothing that is not on disk."""
    start, end = role.marks.log_start_offset, role.marks.local_start_offset
    return HistoryTime(log.topic_id, log.topic_partition, timestamp_ms, start, end) if start < end else None
