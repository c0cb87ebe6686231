"""OpenWrite: a task attempt joins a write, says that it lives, or that it is done.

The first attempt of a write needs a number that no other write has: the coordinator says so, and is asked
again with a producer id that this broker takes from its block.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.handlers.init_producer_id import fresh_id
from sparklog.broker.handlers.transactions.transaction_calls import ask
from sparklog.broker.handlers.writes.claims import claim_of
from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.write_coordinator.requests import OpenWrite
from sparklog.core.write_coordinator.responses import OpenedWrite
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.model.write_outcomes import MemberState, OpenOutcome
from sparklog.wire.messages.writes.open_write import OpenWriteRequest, OpenWriteResponse, OpenWriteTopic

STATES: Final = {state.value: state for state in MemberState}


def handle(call: Call, request: OpenWriteRequest) -> None:
    asked = _asked(call, request)
    if isinstance(asked, ErrorCode):
        call.reply(OpenWriteResponse(error_code=asked))
        return

    def answered(opened: OpenedWrite) -> None:
        if opened.outcome is OpenOutcome.NEEDS_WRITE_NUMBER:
            call.broker.waiting_room.submit(lambda: call.carefully(lambda: _ask_with_number(call, request)))
        else:
            call.carefully(lambda: call.reply(_response(opened)))

    call.broker.coordinators.submit(TRANSACTION_STATE_TOPIC, asked, answered)


def _asked(call: Call, request: OpenWriteRequest) -> OpenWrite | ErrorCode:
    state, topics = STATES.get(request.state), _topics(call, request.topics)
    if state is None:
        return ErrorCode.invalid_request
    if topics is None:
        return ErrorCode.unknown_topic_or_partition
    return OpenWrite(
        app=request.app_id,
        version=request.app_version,
        run=request.run,
        attempt=request.attempt,
        timeout_ms=request.timeout_ms,
        is_plain=request.is_plain,
        topics=topics,
        state=state,
        producer_id=request.producer_id,
        claim=claim_of(call, request.app_id),
    )


def _ask_with_number(call: Call, request: OpenWriteRequest) -> None:
    """On a thread that may wait for the controller. Topics may be deleted meanwhile: ids are read anew."""
    fresh = fresh_id(call)
    asked = _asked(call, request)
    if isinstance(fresh, ErrorCode):
        call.reply(OpenWriteResponse(error_code=fresh))
    elif isinstance(asked, ErrorCode):
        call.reply(OpenWriteResponse(error_code=asked))
    else:
        ask(call, replace(asked, fresh_write_number=fresh), _response)


def _topics(call: Call, named: Iterable[OpenWriteTopic]) -> tuple[TransactionTopic, ...] | None:
    """The topics with their present ids; None if a partition does not exist."""
    topics: list[TransactionTopic] = []
    for topic in named:
        numbers = tuple(sorted(set(topic.partitions)))
        if any(call.broker.metadata.partition(TopicPartition(topic.name, one)) is None for one in numbers):
            return None
        topics.append(TransactionTopic(topic.name, call.broker.metadata.topic_id(topic.name), numbers))
    return tuple(topics)


def _response(opened: OpenedWrite) -> OpenWriteResponse:
    return OpenWriteResponse(
        error_code=opened.error,
        outcome=opened.outcome,
        producer_id=opened.producer_id,
        app_version=opened.version,
    )
