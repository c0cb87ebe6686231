"""LeanFetch: a follower's fetch in a session that it has opened by Fetch, in few bytes.

Positions are read, wait and are answered as those of Fetch are, by the same purgatory and the same session.
What differs is the form (``wire.messages.data.lean_fetch``): partitions go by slot, and there is neither a
last stable offset nor a divergence. Where logs part, the follower is asked to come again by Fetch. It does so
in the same session, which has noted nothing as sent.
"""

import logging
from collections.abc import Callable
from typing import Final

from sparklog.broker.call import Call, bounded_timeout_ms
from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.broker.partition.partition import Partition
from sparklog.broker.waiting.asked_partitions import AskedPartition
from sparklog.broker.waiting.fetch_purgatory import NOT_READ, FetchLimits
from sparklog.broker.waiting.fetch_sessions import LeanContext
from sparklog.broker.waiting.lean_wait import LeanAsked
from sparklog.broker.waiting.session_partitions import rest_max_ms
from sparklog.core.replication.session_slots import LeanAnswer
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.ids import BrokerEpoch, TopicPartition
from sparklog.model.parts import Part
from sparklog.wire.messages.data.lean_fetch import (
    LeanFetchRequest,
    LeanFetchResponse,
    packed_answers,
    unpacked_positions,
)

logger: Final = logging.getLogger(__name__)


Refused = list[tuple[AskedPartition, ReadResult]]
"""Partitions that this broker cannot read, each with why."""


def handle(call: Call, request: LeanFetchRequest) -> None:
    try:
        positions = unpacked_positions(request.positions)
    except WireError as error:
        logger.warning("a lean fetch from %s is refused: %s", call.context.client_host, error)
        call.reply(LeanFetchResponse(error_code=ErrorCode.invalid_request))
        return
    config = call.broker.config
    context = call.broker.fetch_sessions.begin_lean(
        request.session_id,
        request.session_epoch,
        BrokerEpoch(request.broker_epoch),
        positions,
        rest_max_ms(config.get_int("replica.lag.time.max.ms")),
        call.broker.fetches,
    )
    if isinstance(context, ErrorCode):
        call.reply(LeanFetchResponse(error_code=context))
        return
    in_progress = call.broker.fetches_in_progress
    token = in_progress.enter(context.follower, call.context.received_ms)
    try:
        _fetch(call, request, context, lambda: in_progress.leave(token))
    except BaseException:
        in_progress.leave(token)
        raise


def _fetch(call: Call, request: LeanFetchRequest, context: LeanContext, leave: Callable[[], None]) -> None:
    """Answer now or later; ``leave`` is called when there is an answer."""
    refused: Refused = []

    def answer(asked: LeanAsked) -> None:
        leave()
        call.carefully(lambda: _answer(call, context, refused, asked))

    wanted, entries = _find(call, context, refused)
    limits = FetchLimits(
        wait_max_ms=0 if refused else bounded_timeout_ms(request.max_wait_ms),
        bytes_min=request.min_bytes,
        bytes_max=min(request.max_bytes, call.broker.config.get_int("fetch.max.bytes")),
    )
    context.wait.fetch(LeanAsked(wanted, entries, limits, answer))


def _find(
    call: Call, context: LeanContext, refused: Refused
) -> tuple[list[tuple[TopicPartition, Partition, ReadRequest]], list[AskedPartition]]:
    """What to read, and the session's partitions of that; others are added to ``refused``."""
    broker = call.broker
    wanted, entries = [], []
    for entry in context.partitions:
        last = entry.found
        is_here = last is not None and broker.replicas.get(last.topic_partition) is last
        found = last if last is not None and is_here else _look_up(call, entry)
        if isinstance(found, ErrorCode):
            refused.append((entry, ReadResult(found)))
            continue
        entry.found = found
        read = entry.read_request(context.follower, context.follower_epoch)
        wanted.append((found.topic_partition, found, read))
        entries.append(entry)
    return wanted, entries


def _look_up(call: Call, entry: AskedPartition) -> Partition | ErrorCode:
    name, topic_id, number = entry.key
    broker = call.broker
    known = name or broker.replicas.topic_name(topic_id) or broker.metadata.topic_name(topic_id)
    if known is None:
        return ErrorCode.unknown_topic_id
    return call.partition(TopicPartition(known, number), topic_id)


def _answer(call: Call, context: LeanContext, refused: Refused, asked: LeanAsked) -> None:
    results = asked.results
    if not call.allows(AclOperation.cluster_action, ResourceType.cluster):  # not any more
        call.reply(LeanFetchResponse(error_code=ErrorCode.cluster_authorization_failed))
        return
    if any(result.diverging is not None for result in results.values()):
        call.reply(LeanFetchResponse(asks_by_fetch=True))
        return
    read = [(entry, results[wanted[0]]) for entry, wanted in zip(asked.entries, asked.wanted, strict=True)]
    answers: list[LeanAnswer] = []
    records: list[Part] = []
    session = context.session
    with session.guard:
        if not context.is_latest:
            call.reply(LeanFetchResponse(error_code=ErrorCode.invalid_fetch_session_epoch))
            return
        for entry, result in (*refused, *read):
            if result is NOT_READ or not entry.has_lean_news(result):
                continue
            slot = session.partitions.slot_of(entry.key)
            assert slot is not None, entry
            answers.append(
                LeanAnswer(
                    slot, result.error, result.high_watermark, result.log_start_offset, result.size_bytes
                )
            )
            if result.size_bytes:
                records += result.parts
                session.partitions.to_the_end(entry.key)
    errors = [one.error_code for one in answers if one.error_code is not ErrorCode.none]
    call.reply(LeanFetchResponse(answers=packed_answers(answers), records=records), errors=errors)
