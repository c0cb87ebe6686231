"""Requests to the coordinator of an app, over its moves."""

from collections.abc import Generator
from typing import Any

from simulation.clients.client import RETRY_MS
from simulation.clients.transactions.producer import MOVED
from simulation.clients.transactions.script import Ask, GaveUpError, ScriptedClient, Wait
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.discovery.find_coordinator import TRANSACTION_KEY


def ask_coordinator(
    client: ScriptedClient, app: str, request: Any, *, until_us: float
) -> Generator[Ask | Wait, Any, Any]:
    """The first answer without an error.

    Raises:
        GaveUpError: there is none until ``until_us``, or the request is refused for good.
    """
    while True:
        if client.coordinator is None:
            client.coordinator = yield from client.find(app, TRANSACTION_KEY)
        response = yield from client.ask(client.coordinator, request)
        error = ErrorCode.request_timed_out if response is None else response.error_code
        if error is ErrorCode.none:
            return response
        if response is None or error in MOVED:
            client.coordinator = None
        if not error.retriable or client.now_us > until_us:
            raise GaveUpError
        if response is not None:
            yield Wait(RETRY_MS)
