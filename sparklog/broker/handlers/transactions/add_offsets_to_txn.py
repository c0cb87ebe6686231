"""AddOffsetsToTxn: the partition of ``__consumer_offsets`` that has a group's offsets joins a transaction."""

from sparklog.broker.call import Call
from sparklog.broker.coordination.kinds import GROUPS
from sparklog.broker.handlers.transactions.transaction_calls import ask, error_of_version, is_too_long
from sparklog.core.coordinator.key_partition import partition_of
from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.transaction_coordinator.requests import AddPartitions
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.transactions.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)


def handle(call: Call, request: AddOffsetsToTxnRequest) -> None:
    topic = call.broker.metadata.topic(GROUPS.topic)
    if is_too_long(request.transactional_id, request.group_id):
        call.reply(AddOffsetsToTxnResponse(error_code=ErrorCode.invalid_request))
        return
    if topic is None:
        if call.broker.metadata.is_received:
            call.broker.internal_topics.create(GROUPS)
        call.reply(AddOffsetsToTxnResponse(error_code=ErrorCode.coordinator_not_available))
        return
    number = partition_of(request.group_id, len(topic.partitions))
    addition = AddPartitions(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        (TransactionTopic(GROUPS.topic, topic.id, (number,)),),
        call.context.connection_id,
    )
    ask(
        call,
        addition,
        lambda answer: AddOffsetsToTxnResponse(error_code=error_of_version(call, answer.error)),
    )
