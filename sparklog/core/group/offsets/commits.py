"""OffsetCommit and OffsetFetch: positions that a group saves, and reads when it begins.

A commit counts once it is in the log. Several commits of a group may be on their way at once; they count in
the order of the log, which is that of their arrival.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from sparklog.core.coordinator.actions import InDoubt, StateRecord, Token, WriteOutcome, Written
from sparklog.core.group.group import Group
from sparklog.core.group.members.member_checks import generation_error
from sparklog.core.group.members.rebalance import renew_session
from sparklog.core.group.records import NO_TIMESTAMP_MS, OffsetKey, OffsetValue
from sparklog.core.group.requests import (
    NO_RETENTION_TIME_MS,
    UNKNOWN_MEMBER_ID,
    OffsetCommit,
    OffsetFetch,
    OffsetToCommit,
)
from sparklog.core.group.responses import FetchedOffset, OffsetCommitAnswer, OffsetFetchAnswer
from sparklog.core.group.states import GroupState
from sparklog.core.group.turn import Turn, Waiting
from sparklog.core.group.write_errors import commit_error
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition


def commit(token: Token, request: OffsetCommit, turn: Turn) -> None:
    """Write the offsets whose metadata is short enough; the others get OFFSET_METADATA_TOO_LARGE."""
    group = turn.state.groups.get(request.group_id)
    error = _commit_error(group, request)
    if error is not ErrorCode.none:
        turn.reply(token, request.refused(error))
        return
    if group is None:
        group = turn.state.groups[request.group_id] = Group(request.group_id, turn.now.wall_ms)
    if group.state is not GroupState.EMPTY:
        renew_session(group, group.members[request.member_id], turn)
    length_max = turn.settings.offset_metadata_max_length
    values = {
        offset.topic_partition: _value(offset, request, turn)
        for offset in request.offsets
        if java_length(offset.metadata) <= length_max
    }
    if not values:
        turn.reply(token, request.refused(ErrorCode.offset_metadata_too_large))
        return
    records = [
        StateRecord(OffsetKey(group.group_id, topic_partition), value)
        for topic_partition, value in values.items()
    ]
    group.commits_in_flight.update(values.keys())
    waiting = Waiting(token, request)
    after = AfterCommit(group, request.offsets, tuple(values), OffsetCommitAnswer, waiting, counts=True)
    turn.write(group, (*turn.missing_records(group), *records), after, holds_key=False)


def _commit_error(group: Group | None, request: OffsetCommit) -> ErrorCode:
    """Who may commit: with generation -1 anybody, to a group without members; else the group's members.

    Between join and sync a member has no assignment of its generation, and so nothing to commit.
    """
    if group is None:
        return ErrorCode.none if request.generation_id < 0 else ErrorCode.illegal_generation
    is_simple = request.generation_id < 0
    if is_simple and group.state is GroupState.EMPTY:
        return ErrorCode.none
    is_anonymous = request.member_id == UNKNOWN_MEMBER_ID and request.group_instance_id is None
    if is_simple and is_anonymous:
        return ErrorCode.unknown_member_id
    error = generation_error(group, request.generation_id, request.member_id, request.group_instance_id)
    if error is ErrorCode.none and group.state is GroupState.COMPLETING_REBALANCE:
        return ErrorCode.rebalance_in_progress
    return error


def _value(offset: OffsetToCommit, request: OffsetCommit, turn: Turn) -> OffsetValue:
    now_ms = turn.now.wall_ms
    has_retention = request.retention_time_ms != NO_RETENTION_TIME_MS
    return OffsetValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata or "",
        commit_timestamp_ms=now_ms if offset.commit_timestamp_ms is None else offset.commit_timestamp_ms,
        expire_timestamp_ms=now_ms + request.retention_time_ms if has_retention else NO_TIMESTAMP_MS,
    )


def java_length(text: str | None) -> int:
    if text is None or text.isascii():
        return len(text or "")
    return len(text.encode("utf-16-le")) // 2


Answer = Callable[[tuple[tuple[TopicPartition, ErrorCode], ...]], Any]
"""An answer of one error for each partition, in the order of the request."""


@dataclass(slots=True)
class AfterCommit:
    """A commit's answer, plain or in a transaction."""

    group: Group
    offsets: tuple[OffsetToCommit, ...]
    """All of the request."""
    written: tuple[TopicPartition, ...]
    """The partitions of the request that are in the write."""
    answer: Answer
    waiting: Waiting | None
    counts: bool
    """False in a transaction: its offsets count when its marker says so."""

    def on_outcome(self, outcome: WriteOutcome, turn: Turn) -> None:
        if not isinstance(outcome, InDoubt):
            in_flight = self.group.commits_in_flight
            in_flight.subtract(self.written)
            self.group.commits_in_flight = +in_flight
        if self.counts and isinstance(outcome, Written):
            turn.state.counters.offsets_committed += len(self.written)
        for token, _ in self.take_waiting():
            turn.reply(token, self.answer(self._errors(commit_error(outcome))))

    def _errors(self, error: ErrorCode) -> tuple[tuple[TopicPartition, ErrorCode], ...]:
        written = frozenset(self.written)
        too_large = ErrorCode.offset_metadata_too_large
        topic_partitions = [offset.topic_partition for offset in self.offsets]
        return tuple((one, error if one in written else too_large) for one in topic_partitions)

    def take_waiting(self) -> list[Waiting]:
        waiting, self.waiting = self.waiting, None
        return [] if waiting is None else [waiting]


def fetch_offsets(token: Token, request: OffsetFetch, turn: Turn) -> None:
    """Answer what is committed, whatever the state of the group; -1 where nothing is."""
    committed = turn.state.applied.offsets_of(request.group_id)
    group = turn.state.groups.get(request.group_id)
    unstable: Collection[TopicPartition] = ()
    if request.require_stable:
        in_flight = () if group is None else group.commits_in_flight
        unstable = {*in_flight, *turn.state.applied.unstable_of(request.group_id)}
    offsets = []
    for topic_partition in committed if request.topic_partitions is None else request.topic_partitions:
        value = committed.get(topic_partition)
        if topic_partition in unstable:
            offsets.append(FetchedOffset(topic_partition, error=ErrorCode.unstable_offset_commit))
        elif value is None:
            offsets.append(FetchedOffset(topic_partition))
        else:
            offsets.append(FetchedOffset(topic_partition, value.offset, value.leader_epoch, value.metadata))
    turn.reply(token, OffsetFetchAnswer(ErrorCode.none, tuple(offsets)))
