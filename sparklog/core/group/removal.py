"""Removal of groups and of offsets: by an administrator, and because a topic is gone.

What is removed is written as tombstones, also for offsets whose commit is still on its way: the tombstone
comes after it in the log. An empty group from which the last offset goes is removed with it, unless an open
transaction has offsets of it: such a group is not deleted.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sparklog.core.coordinator.actions import StateRecord, Token, WriteOutcome, Written
from sparklog.core.group.group import Group
from sparklog.core.group.records import GroupKey, OffsetKey
from sparklog.core.group.requests import DeleteGroup, OffsetDelete
from sparklog.core.group.responses import DeleteGroupAnswer, OffsetDeleteAnswer
from sparklog.core.group.states import GroupState
from sparklog.core.group.turn import Turn, Waiting
from sparklog.core.group.write_errors import removal_error
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

_BYTES_PER_WRITE: Final = 256 * 1024
_OVERHEAD_BYTES: Final = 64
"""Upper bound of a tombstone's bytes besides the names of its group and topic."""


def delete_group(token: Token, request: DeleteGroup, turn: Turn) -> None:
    group = turn.state.groups.get(request.group_id)
    if group is None:
        turn.reply(token, request.refused(ErrorCode.group_id_not_found))
    elif group.state is not GroupState.EMPTY or turn.state.applied.unstable_of(group.group_id):
        turn.reply(token, request.refused(ErrorCode.non_empty_group))
    else:
        group.pending_members.clear()
        done = DeleteGroupAnswer(ErrorCode.none)
        removed = known_offsets(group, turn)
        turn.state.counters.offsets_deleted += len(removed)
        remove_offsets(group, removed, turn, Waiting(token, request), done)


def delete_offsets(token: Token, request: OffsetDelete, turn: Turn) -> None:
    """Delete offsets of topics that no member reads; a group of another protocol type must be empty."""
    group = turn.state.groups.get(request.group_id)
    if group is None:
        turn.reply(token, request.refused(ErrorCode.group_id_not_found))
        return
    if group.state is GroupState.EMPTY:
        subscribed: set[TopicPartition] = set()
    elif group.is_consumer_group:
        subscribed = {one for one in request.topic_partitions if group.is_subscribed_to(one.topic)}
    else:
        turn.reply(token, request.refused(ErrorCode.non_empty_group))
        return
    errors = tuple(
        (one, ErrorCode.group_subscribed_to_topic if one in subscribed else ErrorCode.none)
        for one in request.topic_partitions
    )
    known = known_offsets(group, turn).keys() - subscribed
    removed = [one for one in dict.fromkeys(request.topic_partitions) if one in known]
    done = OffsetDeleteAnswer(ErrorCode.none, errors)
    if removed:
        turn.state.counters.offsets_deleted += len(removed)
        remove_offsets(group, removed, turn, Waiting(token, request), done)
    else:
        turn.reply(token, done)


def forget_topics(names: Collection[str], turn: Turn) -> None:
    """Remove the offsets of topics that are gone, from all groups."""
    for group in list(turn.state.groups.values()):
        removed = [one for one in known_offsets(group, turn) if one.topic in names]
        if removed:
            turn.state.counters.offsets_deleted += len(removed)
            remove_offsets(group, removed, turn)


def known_offsets(group: Group, turn: Turn) -> dict[TopicPartition, None]:
    """The partitions with a committed offset, or with a commit on its way."""
    committed = turn.state.applied.offsets_of(group.group_id)
    return dict.fromkeys([*committed, *group.commits_in_flight])


def remove_offsets(
    group: Group,
    removed: Collection[TopicPartition],
    turn: Turn,
    waiting: Waiting | None = None,
    done: Any = None,
) -> None:
    """Write tombstones, and then answer the waiting request with ``done``.

    The tombstone of an empty group that keeps no offset goes with them, last.
    """
    records = [StateRecord(OffsetKey(group.group_id, one), None) for one in removed]
    is_unstable = bool(turn.state.applied.unstable_of(group.group_id))
    keeps_offset = is_unstable or bool(known_offsets(group, turn).keys() - set(removed))
    is_written = group.group_id in turn.state.applied.groups
    if group.state is GroupState.EMPTY and not keeps_offset and is_written:
        records.append(StateRecord(GroupKey(group.group_id), None))
    elif records:
        records = [*turn.missing_records(group), *records]
    parts = list(_parts(records, group.group_id))
    after = AfterRemoval(waiting, done, outstanding=len(parts))
    for part in parts:
        turn.write(group, tuple(part), after, holds_key=True)
    if not records and waiting is not None:
        turn.reply(waiting.token, done)


def _parts(records: Sequence[StateRecord], group_id: str) -> Iterator[list[StateRecord]]:
    """The records in writes that fit into a batch of the topic."""
    group_bytes = len(group_id.encode()) + _OVERHEAD_BYTES
    part: list[StateRecord] = []
    size_bytes = 0
    for record in records:
        topic = record.key.topic_partition.topic if isinstance(record.key, OffsetKey) else ""
        record_bytes = group_bytes + len(topic)
        if part and size_bytes + record_bytes > _BYTES_PER_WRITE:
            yield part
            part, size_bytes = [], 0
        part.append(record)
        size_bytes += record_bytes
    if part:
        yield part


@dataclass(slots=True)
class AfterRemoval:
    """Tombstones are being written; the request is answered after the last write, or the first that fails."""

    waiting: Waiting | None
    done: Any
    outstanding: int
    """Writes that are not in the log yet."""

    def on_outcome(self, outcome: WriteOutcome, turn: Turn) -> None:
        if not isinstance(outcome, Written):
            turn.refuse(self.take_waiting(), removal_error(outcome))
            return
        self.outstanding -= 1
        if not self.outstanding:
            for token, _ in self.take_waiting():
                turn.reply(token, self.done)

    def take_waiting(self) -> list[Waiting]:
        waiting, self.waiting = self.waiting, None
        return [] if waiting is None else [waiting]
