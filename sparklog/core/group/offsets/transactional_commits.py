"""TxnOffsetCommit: positions that a consumer saves together with what its producer writes.

They are written as records of the producer's transaction, and count when its marker says so. A late commit
must not enter the next transaction, or one that nobody ends. So before the first offsets of a transaction its
coordinator is asked whether the transaction is still open, under a *guard*, which an end of the producer's
transaction makes void (KIP-890, KAFKA-14402):

    commit --> guard --> coordinator: is it open? --> commit with the guard --> void: guard again

Member, generation and instance are looked at, so that a member that was replaced commits nothing (KIP-447).
"""

from collections.abc import Hashable
from typing import Final

from sparklog.core.coordinator.actions import StateRecord, Token
from sparklog.core.group.group import Group
from sparklog.core.group.members.member_checks import generation_error
from sparklog.core.group.offsets.commits import AfterCommit, java_length
from sparklog.core.group.records import OffsetKey, OffsetValue
from sparklog.core.group.requests import UNKNOWN_MEMBER_ID, TransactionalOffsetCommit
from sparklog.core.group.responses import TransactionalCommitAnswer
from sparklog.core.group.states import GroupState
from sparklog.core.group.turn import Turn, Waiting
from sparklog.core.producers.latest_connections import LATE
from sparklog.model.errors import ErrorCode

GUARDS_MAX: Final = 10_000
"""Attempts that are remembered; the oldest is void then."""


def commit_in_transaction(token: Token, request: TransactionalOffsetCommit, turn: Turn) -> None:
    """Write the offsets whose metadata is short enough; the others get OFFSET_METADATA_TOO_LARGE."""
    if turn.state.connections.is_late(*_sender(request), request.connection):
        turn.reply(token, LATE)
        return
    group = turn.state.groups.get(request.group_id)
    error = _error(group, request)
    if error is not ErrorCode.none:
        turn.reply(token, request.refused(error))
        return
    length_max = turn.settings.offset_metadata_max_length
    values = {
        one.topic_partition: OffsetValue(one.offset, one.leader_epoch, one.metadata or "", turn.now.wall_ms)
        for one in request.offsets
        if java_length(one.metadata) <= length_max
    }
    if not values:
        turn.reply(token, request.refused(ErrorCode.offset_metadata_too_large))
        return
    if not _is_verified(request, turn):
        turn.reply(token, _to_be_verified(request, turn))
        return
    if group is None:
        group = turn.state.groups[request.group_id] = Group(request.group_id, turn.now.wall_ms)
    records = [
        StateRecord(OffsetKey(group.group_id, topic_partition), value)
        for topic_partition, value in values.items()
    ]
    group.commits_in_flight.update(values.keys())
    turn.state.verified_epochs[request.producer.producer_id] = request.producer.producer_epoch
    waiting = Waiting(token, request)
    after = AfterCommit(
        group, request.offsets, tuple(values), TransactionalCommitAnswer, waiting, counts=False
    )
    turn.write(group, tuple(records), after, holds_key=False, producer=request.producer)


def _sender(request: TransactionalOffsetCommit) -> tuple[Hashable, int]:
    """The producer, for each group of its own, and its epoch."""
    return (request.group_id, request.producer.producer_id), request.producer.producer_epoch


def _error(group: Group | None, request: TransactionalOffsetCommit) -> ErrorCode:
    """Unlike with a plain commit, nobody needs to be a member, and a rebalance under way does no harm."""
    is_simple = request.generation_id < 0
    is_anonymous = request.member_id == UNKNOWN_MEMBER_ID and request.group_instance_id is None
    if group is None:
        return ErrorCode.none if is_simple else ErrorCode.unknown_member_id
    if is_simple and (is_anonymous or group.state is GroupState.EMPTY):
        return ErrorCode.none
    return generation_error(group, request.generation_id, request.member_id, request.group_instance_id)


def _is_verified(request: TransactionalOffsetCommit, turn: Turn) -> bool:
    """Whether the transaction has verified offsets in this partition already, or has passed a verification.

    An epoch is verified for itself: the log refuses the marker of an earlier one.
    """
    producer_id, producer_epoch = request.producer
    is_open = producer_id in turn.state.applied.pending
    if is_open and turn.state.verified_epochs.get(producer_id) == producer_epoch:
        return True
    return request.guard is not None and turn.state.guards.get(producer_id) == request.guard


def _to_be_verified(request: TransactionalOffsetCommit, turn: Turn) -> TransactionalCommitAnswer:
    """Attempts of one producer share their guard."""
    guards, producer_id = turn.state.guards, request.producer.producer_id
    if producer_id not in guards:
        turn.state.last_guard += 1
        guards[producer_id] = turn.state.last_guard
        if len(guards) > GUARDS_MAX:
            del guards[next(iter(guards))]
    return TransactionalCommitAnswer((), guard=guards[producer_id])
