"""The answer to a produce, made of what became of its batches."""

from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.partition.append_results import Appended, AppendResult, HeldUp, LateRequest, Refused
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.data.produce import (
    BatchIndexAndErrorMessage,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResponse,
)

SENT_AGAIN: Final = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.corrupt_message,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.request_timed_out,
        ErrorCode.kafka_storage_error,
    }
)
"""Answers upon which clients send a batch again; it may be in the log, but a change of leader may cut it."""

Results = dict[TopicPartition, AppendResult]


def answer_one(
    call: Call, request: ProduceRequest, topic_partition: TopicPartition, result: AppendResult
) -> None:
    """Answer a produce of one batch."""
    form = call.answer_form
    if form is not None and request.acks != 0 and isinstance(result, Appended):
        call.reply_appended(
            form,
            topic_partition.partition,
            result.base_offset,
            result.log_append_time_ms,
            result.log_start_offset,
        )
    else:
        answer(call, request, {topic_partition: result})


def answer(call: Call, request: ProduceRequest, results: Results) -> None:
    if any(isinstance(result, LateRequest) for result in results.values()):
        call.exchange.close()
        return
    if request.acks == 0:
        if any(result.error is not ErrorCode.none for result in results.values()):
            call.exchange.close()
        else:
            call.no_reply()
        return
    for topic_partition, result in results.items():
        if result.error in SENT_AGAIN and not isinstance(result, HeldUp):
            call.broker.refusals.note(call.context.connection_id, topic_partition)
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
    if isinstance(result, Appended):
        return ProducePartitionResponse(
            index=index,
            base_offset=result.base_offset,
            log_append_time_ms=result.log_append_time_ms,
            log_start_offset=result.log_start_offset,
        )
    record_errors = result.record_errors if isinstance(result, Refused) else ()
    return ProducePartitionResponse(
        index=index,
        error_code=result.error,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        error_message=result.message or None,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=n, batch_index_error_message=why)
            for n, why in record_errors
        ],
    )
