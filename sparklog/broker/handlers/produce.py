"""Produce: append batches to partitions that this broker leads.

With acks=0 there is no response; if anything failed the connection is closed instead, the only way to say so.
Each batch is checked before any lock is taken; a refused batch uses up no offset.
"""

from sparklog.broker.answers import AppendResult
from sparklog.broker.call import Call
from sparklog.model.config import TopicConfig
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.records.payload import SUPPORTED_PAYLOADS
from sparklog.records.validate import Refused, check_produced
from sparklog.wire.messages.produce import (
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)

Results = dict[TopicPartition, AppendResult]


def handle(call: Call, request: ProduceRequest) -> None:
    if request.acks not in (-1, 0, 1):
        refusal = AppendResult(ErrorCode.invalid_required_acks)
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
            if isinstance(partition, ErrorCode):
                wait.results[topic_partition] = AppendResult(_unknown(call, topic_partition))
                continue
            records = memoryview(b"") if data.records is None else memoryview(data.records)
            bytes_max = _topic_config(call, topic.name).get_int("max.message.bytes")
            checked = check_produced(records, max_batch_bytes=bytes_max, allow_arrow=allow_arrow)
            if isinstance(checked, Refused):
                wait.results[topic_partition] = AppendResult(checked.error, message=checked.message)
                continue
            token = purgatory.expect(wait, partition)
            result = partition.append_as_leader(records, checked.batches, request.acks, token)
            purgatory.on_appended(wait, token, topic_partition, result)
    _let_go(call, request)
    purgatory.finish(wait, open_token, request.timeout_ms)


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
    if call.broker.metadata.partition(topic_partition) is not None:
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
        log_start_offset=-1 if failed else result.log_start_offset,
        error_message=result.message or None,
    )
