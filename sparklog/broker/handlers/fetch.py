"""Fetch: batches for consumers, up to the high watermark, and for followers, up to the log's end.

A read-committed consumer (isolation level 1) gets batches up to the last stable offset, and beside them the
aborted transactions that have records among these: it leaves those records out itself, as in Kafka.

Replies name partitions as they were asked for: by topic name up to version 12, by topic id from 13 on. What a
fetch asks for, and which answers it gets, depend on its session (``fetch_sessions``).
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sparklog.broker.call import Call, bounded_timeout_ms
from sparklog.broker.conversion.for_old_reader import format_of_fetch
from sparklog.broker.conversion.readers import Reader
from sparklog.broker.conversion.wanted_columns import misplaced, refused
from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.broker.partition.partition import Partition
from sparklog.broker.waiting.asked_partitions import AskedPartition
from sparklog.broker.waiting.fetch_purgatory import NOT_READ, FetchLimits, Results, SessionFetch
from sparklog.broker.waiting.fetch_sessions import FetchContext
from sparklog.broker.waiting.session_partitions import Resting, rest_max_ms
from sparklog.core.replication.read_replica import RACK_AWARE_SELECTOR
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.ids import BrokerEpoch, BrokerId, TopicId, TopicPartition
from sparklog.model.kafka_numbers import ISOLATION_LEVELS, READ_COMMITTED
from sparklog.model.parts import parts_length
from sparklog.wire.messages.data.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchEpochEndOffset,
    FetchPartition,
    FetchPartitionData,
    FetchRequest,
    FetchResponse,
)

logger: Final = logging.getLogger(__name__)

FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_OF_STORAGE_ERROR = 6

FIRST_VERSION_WITH_ERROR = 7
FIRST_VERSION_WITH_RACKS = 11
FIRST_VERSION_WITH_ZSTD = 10

NOT_ALLOWED: Final = ReadResult(ErrorCode.topic_authorization_failed)

SELECTOR = "replica.selector.class"
SESSION_SLOTS = "max.incremental.fetch.session.cache.slots"


@dataclass(frozen=True, slots=True)
class Asked:
    """A partition that a fetch asks for: it is read by ``read``, or ``answer`` says why not."""

    entry: AskedPartition
    partition: Partition | None = None
    read: ReadRequest | None = None
    answer: ReadResult | None = None


def handle(call: Call, request: FetchRequest) -> None:
    if request.replica_id < 0 or not call.allows(AclOperation.cluster_action, ResourceType.cluster):
        _fetch(call, request, lambda: None)
        return
    in_progress = call.broker.fetches_in_progress
    token = in_progress.enter(BrokerId(request.replica_id), call.context.received_ms)
    try:
        _fetch(call, request, lambda: in_progress.leave(token))
    except BaseException:
        in_progress.leave(token)
        raise


def _fetch(call: Call, request: FetchRequest, leave: Callable[[], None]) -> None:
    """Answer now or later; ``leave`` is called when there is an answer."""
    reason = misplaced(request)
    if reason:
        logger.warning("a fetch from %s is refused: %s", call.context.client_host, reason)
    if reason or request.isolation_level not in ISOLATION_LEVELS:
        leave()
        _refuse(call, request)
        return
    context = call.broker.fetch_sessions.begin(
        request,
        call.broker.config.get_int(SESSION_SLOTS),
        by_topic_id=call.version >= FIRST_VERSION_WITH_TOPIC_IDS,
        rest_max_ms=rest_max_ms(call.broker.config.get_int("replica.lag.time.max.ms")),
    )
    if isinstance(context, ErrorCode):
        leave()
        call.reply(FetchResponse(error_code=context))
        return
    asked = _find_all(call, context)
    wanted = [
        (one.partition.topic_partition, one.partition, one.read)
        for one in asked
        if one.partition is not None and one.read is not None
    ]
    bytes_max = _reply_bytes_max(call, request)
    limits = FetchLimits(
        wait_max_ms=0 if len(wanted) < len(asked) else bounded_timeout_ms(context.wait_max_ms),
        bytes_min=min(request.min_bytes, bytes_max),
        bytes_max=bytes_max,
    )

    session = _follower_session(request, context, asked)

    def answer(results: Results) -> None:
        leave()
        joined = [] if session is None else [*map(_joined, session.joined)]
        call.carefully(lambda: _answer(call, context, [*asked, *joined], results))

    call.broker.fetches.fetch(wanted, limits, answer, session)


def _follower_session(
    request: FetchRequest, context: FetchContext, asked: list[Asked]
) -> SessionFetch | None:
    """The fetch as one of a follower's session, in which partitions may rest; None of another."""
    if context.session is None or request.replica_id < 0:
        return None
    entries = {one.partition.topic_partition: one.entry for one in asked if one.partition is not None}
    return SessionFetch(context.session.partitions, entries)


def _joined(resting: Resting) -> Asked:
    return Asked(resting.entry, resting.partition, resting.request)


def _refuse(call: Call, request: FetchRequest) -> None:
    """INVALID_REQUEST for all that is asked; before version 7 only partitions have errors."""
    error = ErrorCode.invalid_request
    if call.version >= FIRST_VERSION_WITH_ERROR:
        call.reply(FetchResponse(error_code=error))
        return
    call.reply(
        FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=[
                        FetchPartitionData(partition_index=asked.partition, error_code=error)
                        for asked in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
    )


def _find_all(call: Call, context: FetchContext) -> list[Asked]:
    request = context.request
    follower = BrokerId(request.replica_id) if request.replica_id >= 0 else None
    follower_epoch = BrokerEpoch(request.replica_epoch)
    racks = _racks(call, request)
    from_any_replica = follower is None and call.version >= FIRST_VERSION_WITH_RACKS
    names: dict[TopicId, str | None] = {}
    readable: dict[str, bool] = {}
    asked: list[Asked] = []
    for entry in context.partitions:
        name: str | None
        name, topic_id, number = entry.key
        if call.version >= FIRST_VERSION_WITH_TOPIC_IDS:
            if topic_id not in names:
                names[topic_id] = _name_of(call, topic_id)
            name = names[topic_id]
        if name is None:
            asked.append(Asked(entry, answer=ReadResult(ErrorCode.unknown_topic_id)))
            continue
        if call.access is not None:
            if name not in readable:
                readable[name] = _may_fetch(call, request, name)
            if not readable[name]:
                asked.append(Asked(entry, answer=NOT_ALLOWED))
                continue
        topic_partition = TopicPartition(name, number)
        found = call.partition(topic_partition, topic_id)
        if isinstance(found, ErrorCode):
            asked.append(Asked(entry, answer=ReadResult(found)))
            continue
        if follower is None and (refusal := _cannot_read(call, name)) is not None:
            asked.append(Asked(entry, answer=ReadResult(refusal)))
            continue
        if (error := _refused_columns(call, entry.asked, found)) is not ErrorCode.none:
            asked.append(Asked(entry, answer=ReadResult(error)))
            continue
        read = entry.read_request(
            follower,
            follower_epoch,
            from_any_replica=from_any_replica,
            read_committed=follower is None and request.isolation_level == READ_COMMITTED,
            with_aborted=follower is None and request.with_aborted == 1,
        )
        elsewhere = found.reads.closer_replica(read, request.rack_id, racks) if racks else None
        if elsewhere is None:
            asked.append(Asked(entry, found, read))
        else:
            asked.append(Asked(entry, answer=elsewhere))
    return asked


def _may_fetch(call: Call, request: FetchRequest, topic: str) -> bool:
    if request.replica_id >= 0:
        return call.allows(AclOperation.cluster_action, ResourceType.cluster)
    return call.allows(AclOperation.read, ResourceType.topic, topic)


def _without_what_is_forbidden_now(call: Call, request: FetchRequest, results: Results) -> Results:
    """Rules may have changed while the fetch waited."""
    topics = {topic_partition.topic for topic_partition in results}
    forbidden = {topic for topic in topics if not _may_fetch(call, request, topic)}
    if not forbidden:
        return results
    return {one: NOT_ALLOWED if one.topic in forbidden else result for one, result in results.items()}


def _cannot_read(call: Call, topic: str) -> ErrorCode | None:
    """Why a client cannot read the topic: its batches are all in zstd (KIP-110), or they are not converted to
    the client's message format (KIP-283). None if it can read them.
    """
    if call.version >= FIRST_VERSION_WITH_ZSTD:
        return None
    config = call.topic_config(topic)
    if config.get_str("compression.type") == "zstd":
        return ErrorCode.unsupported_compression_type
    if format_of_fetch(call.version) is not None and not config.get_bool("message.downconversion.enable"):
        return ErrorCode.unsupported_version
    return None


def _refused_columns(call: Call, asked: FetchPartition, partition: Partition) -> ErrorCode:
    """The error of a partition of which columns are wanted that it does not give."""
    if asked.columns is None:
        return ErrorCode.none
    error, why = refused(asked.columns, partition, bytes(asked.condition))
    if error is not ErrorCode.none:
        client = call.context.client_host
        logger.warning("columns of %s are not given to %s: %s", partition.topic_partition, client, why)
    return error


def _racks(call: Call, request: FetchRequest) -> dict[BrokerId, str | None]:
    """The racks of the brokers that a consumer can reach through its listener, if it reads by rack."""
    if request.replica_id >= 0 or not request.rack_id:
        return {}
    if call.broker.config.get(SELECTOR) != RACK_AWARE_SELECTOR:
        return {}
    nodes = call.broker.metadata.snapshot.nodes(call.context.listener)
    return {node.id: node.rack for node in nodes.values()}


def _name_of(call: Call, topic_id: TopicId) -> str | None:
    return call.broker.replicas.topic_name(topic_id) or call.broker.metadata.topic_name(topic_id)


def _answer(call: Call, context: FetchContext, asked: list[Asked], results: Results) -> None:
    request = context.request
    if call.access is not None:
        results = _without_what_is_forbidden_now(call, request, results)
    reader = Reader(call.version, request.payload_kinds, _reply_bytes_max(call, request))
    answers: list[tuple[AskedPartition, FetchPartitionData]] = []
    fetched: list[tuple[Partition, int, int]] = []
    for one in asked:
        result = one.answer if one.partition is None else results[one.partition.topic_partition]
        assert result is not None, one
        if result is NOT_READ:  # it joined a moment ago; the next fetch reads it
            continue
        result = _for_client(request, one, result, reader)
        data = _partition(call, request, one.entry.asked.partition, result)
        answers.append((one.entry, data))
        if one.partition is not None and data.records and request.replica_id < 0:
            records = max(0, result.next_offset - one.entry.asked.fetch_offset)
            fetched.append((one.partition, parts_length(data.records), records))
    if call.meter is not None:
        size_bytes = sum(parts_length(data.records or ()) for _, data in answers)
        if call.meter.delay_of_read_ms(size_bytes):
            call.reply(context.throttled())
            return
    for partition, size_bytes, records in fetched:
        partition.counts.count_fetched(size_bytes, records)
    reader.count_in(call.broker.conversions)
    call.reply(context.answer(answers))


def _for_client(request: FetchRequest, one: Asked, result: ReadResult, reader: Reader) -> ReadResult:
    """``result`` with its batches as this client reads them."""
    if request.replica_id >= 0 or not result.parts or one.partition is None or one.read is None:
        return result
    try:
        return reader.take(one.partition, one.read, result)
    except (OSError, CorruptBatch) as problem:
        logger.error(
            "%s: a batch cannot be converted for its reader: %s", one.partition.topic_partition, problem
        )
        return result._replace(error=ErrorCode.corrupt_message, parts=())


def _reply_bytes_max(call: Call, request: FetchRequest) -> int:
    """What the client, the broker and the client's quota allow: a fetch that exceeded the quota for all of
    its measured time would be answered empty for ever (KAFKA-9677).
    """
    of_quota = None if call.meter is None else call.meter.read_bytes_max()
    of_broker = call.broker.config.get_int("fetch.max.bytes")
    return min(request.max_bytes, of_broker if of_quota is None else min(of_broker, max(of_quota, 1)))


def _partition(call: Call, request: FetchRequest, index: int, result: ReadResult) -> FetchPartitionData:
    error = result.error
    if error is ErrorCode.kafka_storage_error and call.version < FIRST_VERSION_OF_STORAGE_ERROR:
        error = ErrorCode.not_leader_or_follower
    wants_aborted = request.isolation_level == READ_COMMITTED or request.with_aborted == 1
    diverging = None
    if result.diverging is not None:
        diverging = FetchEpochEndOffset(epoch=result.diverging.epoch, end_offset=result.diverging.end_offset)
    return FetchPartitionData(
        partition_index=index,
        error_code=error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=_aborted(result) if wants_aborted else None,
        preferred_read_replica=result.preferred,
        records=result.parts,
        diverging_epoch=diverging,
        looked_to=result.looked_to,
    )


def _aborted(result: ReadResult) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
        for one in result.aborted
    ]
