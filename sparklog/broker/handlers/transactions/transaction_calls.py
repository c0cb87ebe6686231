"""How a handler asks the coordinator of a transactional id, and the codes of errors in each version."""

from collections.abc import Callable
from typing import Any, Final

from sparklog.broker.call import Call
from sparklog.broker.handlers.groups.group_calls import is_too_long
from sparklog.core.producers.latest_connections import Late
from sparklog.model.errors import ErrorCode
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC

__all__ = ["ask", "error_of_version", "is_too_long"]

FIRST_WITH_PRODUCER_FENCED: Final = {22: 4, 24: 2, 25: 2, 26: 2}
"""By API, the version from which on PRODUCER_FENCED may be answered; older ones have another word for it."""


def ask(call: Call, request: Any, answer: Callable[[Any], Any]) -> None:
    """Ask the coordinator of the request's id; ``answer`` makes its response one of the wire. A request that
    is late gets none: its connection is closed.
    """

    def answered(response: Any) -> None:
        if isinstance(response, Late):
            call.exchange.close()
        else:
            call.carefully(lambda: call.reply(answer(response)))

    call.broker.coordinators.submit(TRANSACTION_STATE_TOPIC, request, answered)


def error_of_version(call: Call, error: ErrorCode) -> ErrorCode:
    """``error`` as the request's version knows it."""
    first = FIRST_WITH_PRODUCER_FENCED.get(call.header.api_key, 0)
    if error is ErrorCode.producer_fenced and call.version < first:
        return ErrorCode.invalid_producer_epoch
    return error
