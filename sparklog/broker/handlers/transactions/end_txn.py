"""EndTxn: commit or abort. The answer says that the decision is in the log; its markers follow."""

from sparklog.broker.call import Call
from sparklog.broker.handlers.transactions.transaction_calls import ask, error_of_version, is_too_long
from sparklog.core.transaction_coordinator.requests import EndTransaction
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse


def handle(call: Call, request: EndTxnRequest) -> None:
    if is_too_long(request.transactional_id):
        call.reply(EndTxnResponse(error_code=ErrorCode.invalid_request))
        return
    end = EndTransaction(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        call.context.connection_id,
    )
    ask(call, end, lambda answer: EndTxnResponse(error_code=error_of_version(call, answer.error)))
