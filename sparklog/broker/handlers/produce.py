"""Produce: append batches to partitions that this broker leads.

With acks=0 there is no response; if anything failed the connection is closed instead, the only way to say so.
Each batch is checked before any lock is taken; a refused batch uses up no offset.
"""

from typing import Final

from sparklog.broker.answers import AppendResult
from sparklog.broker.call import Call
from sparklog.model.config import TopicConfig
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.ids import TOPIC_NAME_LENGTH_MAX, TopicPartition
from sparklog.records.envelope import parse_header
from sparklog.records.payload import SUPPORTED_PAYLOADS
from sparklog.records.timestamps import check_create_times, stamp_append_time
from sparklog.records.validate import Accepted, Refused, check_produced
from sparklog.storage.snapshots import producer_batch
from sparklog.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)

LOG_APPEND_TIME: Final = "LogAppendTime"

Results = dict[TopicPartition, AppendResult]


def handle(call: Call, request: ProduceRequest) -> None:
    if request.acks not in (-1, 0, 1):
        message = f"acks={request.acks}: must be 0, 1 or -1 (all)"
        refusal = AppendResult(ErrorCode.invalid_required_acks, message=message)
        _answer(call, request, dict.fromkeys(_asked(request), refusal))
        return
    if request.transactional_id is not None:
        message = "transactions are not supported yet"
        refusal = AppendResult(ErrorCode.transactional_id_authorization_failed, message=message)
        _answer(call, request, dict.fromkeys(_asked(request), refusal))
        return
    purgatory = call.broker.replicas.produces
    wait, open_token = purgatory.begin(
        lambda results: call.carefully(lambda: _answer(call, request, results))
    )
    allow_arrow = bool(set(request.payload_kinds) & set(SUPPORTED_PAYLOADS))
    for topic in request.topic_data:
        for data in topic.partition_data:
            topic_partition = TopicPartition(topic.name, data.index)
            partition = call.broker.replicas.find(topic_partition)
            records = memoryview(b"") if data.records is None else memoryview(data.records)
            if isinstance(partition, ErrorCode):
                wait.results[topic_partition] = AppendResult(_unknown(call, topic_partition))
                _await_again(call, topic_partition, records)
                continue
            config = _topic_config(call, topic.name)
            checked = check_produced(
                records,
                max_batch_bytes=config.get_int("max.message.bytes"),
                allow_arrow=allow_arrow,
                requires_keys="compact" in config.get_list("cleanup.policy"),
            )
            if isinstance(checked, Accepted):
                checked = _timed(config, records, checked, call.broker.replicas.clock.wall_ms())
            if isinstance(checked, Refused):
                wait.results[topic_partition] = AppendResult(
                    checked.error, message=checked.message, record_errors=checked.record_errors
                )
                if checked.error is ErrorCode.corrupt_message:
                    _await_again(call, topic_partition, records)
                continue
            token = purgatory.expect(wait, partition)
            result = partition.append_as_leader(records, checked.batches, request.acks, token)
            purgatory.on_appended(wait, token, topic_partition, result)
    _let_go(call, request)
    purgatory.finish(wait, open_token, request.timeout_ms)


def _await_again(call: Call, topic_partition: TopicPartition, records: memoryview) -> None:
    """We have no replica yet, or a bit flipped on the way: an idempotent producer will send this again, and
    what it has under way behind it must not come first.
    """
    if len(topic_partition.topic) > TOPIC_NAME_LENGTH_MAX:
        return
    try:
        header = parse_header(records)
    except CorruptBatch:
        return
    if header.has_producer and header.producer_epoch >= 0 and header.base_sequence >= 0:
        call.broker.replicas.await_again(topic_partition, producer_batch(header))


def _timed(config: TopicConfig, records: memoryview, accepted: Accepted, now_ms: int) -> Accepted | Refused:
    """Look at the records' time, or give them the leader's, as the topic wants it."""
    if config.get_str("message.timestamp.type") == LOG_APPEND_TIME:
        return stamp_append_time(records, accepted, now_ms)
    return check_create_times(
        records,
        accepted,
        now_ms,
        before_max_ms=config.get_int("message.timestamp.before.max.ms"),
        after_max_ms=config.get_int("message.timestamp.after.max.ms"),
    )


def _let_go(call: Call, request: ProduceRequest) -> None:
    """Everything is in the log or refused: a request that waits for followers must not keep its bytes."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            data.records = None
    call.exchange.frame = memoryview(b"")


def _asked(request: ProduceRequest) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, data.index)
        for topic in request.topic_data
        for data in topic.partition_data
    ]


def _unknown(call: Call, topic_partition: TopicPartition) -> ErrorCode:
    """We hold no replica: somebody else may lead, or nobody knows the topic."""
    if call.broker.metadata.may_exist(topic_partition):
        return ErrorCode.not_leader_or_follower
    return ErrorCode.unknown_topic_or_partition


def _topic_config(call: Call, name: str) -> TopicConfig:
    topic = call.broker.metadata.topic(name)
    return call.broker.config.topic(topic.configs if topic else {})


def _answer(call: Call, request: ProduceRequest, results: Results) -> None:
    if request.acks == 0:
        if any(result.error is not ErrorCode.none for result in results.values()):
            call.exchange.close()
        else:
            call.exchange.no_reply()
        return
    call.reply(
        ProduceResponse(
            responses=[
                ProduceTopicResponse(
                    name=topic.name,
                    partition_responses=[
                        _partition(results[TopicPartition(topic.name, data.index)], data.index)
                        for data in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )
    )


def _partition(result: AppendResult, index: int) -> ProducePartitionResponse:
    failed = result.error is not ErrorCode.none
    return ProducePartitionResponse(
        index=index,
        error_code=result.error,
        base_offset=-1 if failed else result.base_offset,
        log_append_time_ms=-1 if failed else result.log_append_time_ms,
        log_start_offset=-1 if failed else result.log_start_offset,
        error_message=result.message or None,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=n, batch_index_error_message=why)
            for n, why in result.record_errors
        ],
    )
