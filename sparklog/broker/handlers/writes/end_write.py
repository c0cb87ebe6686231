"""EndWrite: a driver commits a write, or aborts the members of its run.

A commit is answered when all markers are written, or says after some seconds that it is decided, and must be
asked again. The answer waits in the coordinator.
"""

from sparklog.broker.call import Call
from sparklog.broker.handlers.transactions.asking import ask
from sparklog.core.write_coordinator.requests import EndWrite
from sparklog.core.write_coordinator.responses import EndedWrite
from sparklog.wire.messages.writes.end_write import EndWriteRequest, EndWriteResponse


def handle(call: Call, request: EndWriteRequest) -> None:
    end = EndWrite(
        app=request.app_id,
        version=request.app_version,
        run=request.run,
        is_commit=request.is_commit,
        is_plain=request.is_plain,
        winners=tuple(request.winners),
    )
    ask(call, end, _response)


def _response(ended: EndedWrite) -> EndWriteResponse:
    return EndWriteResponse(
        error_code=ended.error,
        outcome=ended.outcome,
        app_version=ended.version,
        producer_id=ended.producer_id,
        topic=ended.topic,
    )
