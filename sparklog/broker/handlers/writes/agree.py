"""Agree: tasks agree upon a value. The answer to who puts the first one waits until it is replicated."""

from sparklog.broker.call import Call
from sparklog.broker.handlers.transactions.transaction_calls import ask
from sparklog.core.write_coordinator.requests import Agree
from sparklog.core.write_coordinator.responses import Agreed
from sparklog.wire.messages.writes.agree import AgreeRequest, AgreeResponse


def handle(call: Call, request: AgreeRequest) -> None:
    value = None if request.value is None else bytes(request.value)
    ask(call, Agree(name=request.name, value=value, principal=call.context.principal), _response)


def _response(agreed: Agreed) -> AgreeResponse:
    return AgreeResponse(error_code=agreed.error, value=agreed.value)
