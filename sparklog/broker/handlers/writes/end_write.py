"""EndWrite: a driver commits a write, or aborts the members of its run.

A commit is answered when all markers are written, or says after two seconds that it is decided, names the
partitions without their marker, and must be asked again. The answer waits in the coordinator.
"""

from collections.abc import Iterable

from sparklog.broker.call import Call
from sparklog.broker.handlers.transactions.transaction_calls import ask
from sparklog.broker.handlers.writes.claims import claim_of
from sparklog.core.write_coordinator.requests import EndWrite
from sparklog.core.write_coordinator.responses import EndedWrite
from sparklog.model.ids import TopicPartition
from sparklog.model.write_outcomes import EndOutcome
from sparklog.wire.messages.writes.end_write import EndWriteRequest, EndWriteResponse, MissingTopic


def handle(call: Call, request: EndWriteRequest) -> None:
    end = EndWrite(
        app=request.app_id,
        version=request.app_version,
        run=request.run,
        is_commit=request.is_commit,
        is_plain=request.is_plain,
        winners=tuple(request.winners),
        claim=claim_of(call, request.app_id),
    )

    def response(ended: EndedWrite) -> EndWriteResponse:
        waits = ended.outcome is EndOutcome.NOT_VISIBLE_YET
        return _response(ended, call.broker.markers.missing(end.app) if waits else ())

    ask(call, end, response)


def _response(ended: EndedWrite, missing: Iterable[TopicPartition]) -> EndWriteResponse:
    return EndWriteResponse(
        error_code=ended.error,
        outcome=ended.outcome,
        app_version=ended.version,
        producer_id=ended.producer_id,
        topic=ended.topic,
        missing=_by_topic(missing),
    )


def _by_topic(topic_partitions: Iterable[TopicPartition]) -> list[MissingTopic]:
    topics: dict[str, MissingTopic] = {}
    for name, number in sorted(topic_partitions):
        topics.setdefault(name, MissingTopic(name=name)).partitions.append(number)
    return list(topics.values())
