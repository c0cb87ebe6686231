"""ListTransactions: the transactional ids that this broker coordinates.

While a coordinator of this broker reads its log, the answer has COORDINATOR_LOAD_IN_PROGRESS, because a
transaction that is not listed might be believed to have ended.
"""

from sparklog.broker.call import Call
from sparklog.core.transaction_coordinator.requests import ListTransactions
from sparklog.core.transaction_coordinator.responses import ListedTransactions
from sparklog.core.transaction_coordinator.states import STATES_BY_LABEL
from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.wire.messages.transactions.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)


def handle(call: Call, request: ListTransactionsRequest) -> None:
    states = frozenset(STATES_BY_LABEL[label] for label in request.state_filters if label in STATES_BY_LABEL)
    unknown = [label for label in request.state_filters if label not in STATES_BY_LABEL]
    if unknown and not states:
        call.reply(ListTransactionsResponse(unknown_state_filters=unknown))
        return
    call.broker.coordinators.submit_to_every_host(
        TRANSACTION_STATE_TOPIC,
        ListTransactions(states, frozenset(request.producer_id_filters)),
        lambda responses: call.carefully(lambda: call.reply(_response(responses, unknown))),
    )


def _response(responses: list[ListedTransactions], unknown: list[str]) -> ListTransactionsResponse:
    errors = (one.error for one in responses if one.error is not ErrorCode.none)
    error = next(errors, ErrorCode.none)
    return ListTransactionsResponse(
        error_code=error,
        unknown_state_filters=unknown,
        transaction_states=[
            TransactionState(
                transactional_id=transactional_id,
                producer_id=value.producer_id,
                transaction_state=value.state.label,
            )
            for one in responses
            for transactional_id, value in one.transactions
        ]
        if error is ErrorCode.none
        else [],
    )
