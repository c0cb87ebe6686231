"""DescribeTransactions: state and partitions of transactional ids that this broker coordinates."""

from sparklog.broker.call import Call
from sparklog.broker.handlers.groups.group_calls import ask_coordinator_of_each, without_repetitions
from sparklog.core.transaction_coordinator.requests import DescribeTransaction
from sparklog.core.transaction_coordinator.responses import DescribedTransaction
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.wire.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def handle(call: Call, request: DescribeTransactionsRequest) -> None:
    ids = without_repetitions(request.transactional_ids)
    ask_coordinator_of_each(
        call,
        [DescribeTransaction(transactional_id) for transactional_id in ids],
        lambda described: DescribeTransactionsResponse(transaction_states=list(map(_state, described))),
        topic=TRANSACTION_STATE_TOPIC,
    )


def _state(described: DescribedTransaction) -> TransactionState:
    value = described.value
    if value is None:
        return TransactionState(error_code=described.error, transactional_id=described.transactional_id)
    return TransactionState(
        transactional_id=described.transactional_id,
        transaction_state=value.state.label,
        transaction_timeout_ms=value.timeout_ms,
        transaction_start_time_ms=value.start_ms,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        topics=[TopicData(topic=topic.name, partitions=list(topic.partitions)) for topic in value.topics],
    )
