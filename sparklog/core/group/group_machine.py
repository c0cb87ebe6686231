"""All groups of one partition of ``__consumer_offsets``: the state machine that a shard drives.

    JoinGroup, SyncGroup, Heartbeat, LeaveGroup        join, sync, leave: members and rebalances
    OffsetCommit, OffsetFetch                          commits
    DeleteGroup, OffsetDelete, deleted topics, expiry  removal, expiration
    DescribeGroup, ListGroups                          description

A group lives here as long as anything is known of it: a record in the log, a member, a member id that was
given out, or a write that is under way.
"""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Final, assert_never

from sparklog.core.coordinator.actions import (
    Action,
    InDoubt,
    Reply,
    StateRecord,
    Token,
    Write,
    WriteId,
    WriteOutcome,
    Written,
)
from sparklog.core.coordinator.alarms import Alarms
from sparklog.core.coordinator.state_machine import Now
from sparklog.core.group import requests
from sparklog.core.group.description import describe, list_groups
from sparklog.core.group.group import Group
from sparklog.core.group.group_loading import load_groups
from sparklog.core.group.invariants import check_group, check_partition
from sparklog.core.group.members.departures import on_group_time
from sparklog.core.group.members.join import join
from sparklog.core.group.members.leave import leave
from sparklog.core.group.members.sync import heartbeat, sync
from sparklog.core.group.offsets.commits import commit, fetch_offsets
from sparklog.core.group.offsets.expiration import expire
from sparklog.core.group.offsets.transactional_commits import commit_in_transaction
from sparklog.core.group.records import GroupKey, GroupValue, OffsetKey, OffsetValue
from sparklog.core.group.removal import delete_group, delete_offsets, forget_topics
from sparklog.core.group.requests import GroupRequest
from sparklog.core.group.settings import GroupSettings
from sparklog.core.group.states import GroupState
from sparklog.core.group.turn import Counters, PartitionState, SubscribedTopics, Turn, Waiting
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, NamedTopic
from sparklog.model.time import MonotonicMs

GROUPS_PER_CHECK: Final = 500
"""Groups whose offsets are checked for expiry in one step, so that requests need not wait for thousands."""


@dataclass(slots=True)
class GroupMachine:
    """The groups of one partition, in one leader epoch of its coordinator."""

    state: PartitionState
    alarms: Alarms = field(default_factory=Alarms)
    next_check_ms: MonotonicMs | None = None
    """When offsets are checked for expiry next; None before the groups are loaded."""
    unchecked: deque[str] = field(default_factory=deque)
    """Groups that the check which is under way has not reached."""

    @classmethod
    def of(cls, settings: GroupSettings, subscribed_topics: SubscribedTopics) -> "GroupMachine":
        return cls(PartitionState(settings, subscribed_topics))

    # --------------------------------------------------------------------------------- loading

    def replay(self, record: StateRecord) -> None:
        self.state.applied.apply(record)

    def replay_pending(self, record: StateRecord, producer_id: int) -> None:
        self.state.applied.apply_pending(record, producer_id)

    def replay_loss(self) -> None:
        """Nothing: members of an earlier generation are unknown to a machine that has just loaded."""

    def replay_end(self, producer_id: int, is_commit: bool) -> None:
        self.state.applied.end(producer_id, is_commit)

    def on_loaded(self, now: Now) -> list[Action]:
        turn = Turn(self.state, now)
        load_groups(turn)
        self.next_check_ms = turn.in_ms(self.state.settings.offsets_retention_check_interval_ms)
        for group in self.state.groups.values():
            group.alarm_ms = group.next_deadline_ms()
            self.alarms.set(group.group_id, group.alarm_ms)
        return turn.actions

    # ----------------------------------------------------------------------------------- facts

    def on_request(self, token: Token, request: GroupRequest, now: Now) -> list[Action]:
        turn = Turn(self.state, now)
        group = self.state.groups.get(request.key or "")
        if request.key is not None and group is not None and group.holds:
            raise self.state.events.illegal(f"{request} while writes hold its group: {group.holds}")
        _answer(token, request, turn)
        self._settle(request.key)
        return turn.actions

    def on_written(self, write_id: WriteId, outcome: WriteOutcome, now: Now) -> list[Action]:
        pending = self.state.writes.get(write_id)
        if pending is None:
            raise self.state.events.illegal(f"{outcome} of write {write_id}, which is not under way")
        turn = Turn(self.state, now)
        group = self.state.groups[pending.write.key]
        if isinstance(outcome, InDoubt):
            group.hold(write_id, now.monotonic_ms)
        else:
            del self.state.writes[write_id]
            group.writes_in_flight -= 1
            group.release(write_id, now.monotonic_ms)
        if isinstance(outcome, Written):
            self._apply(pending.write)
        else:
            turn.note(group, f"write {write_id}: {outcome}")
        pending.after.on_outcome(outcome, turn)
        self._settle(group.group_id)
        return turn.actions

    def on_end(self, producer_id: int, is_commit: bool, now: Now) -> list[Action]:
        self.state.guards.pop(producer_id, None)
        self.state.verified_epochs.pop(producer_id, None)
        pending = self.state.applied.pending.get(producer_id, {})
        group_ids = {key.group_id for key in pending}
        committed = self.state.applied.end(producer_id, is_commit)
        self.state.counters.offsets_committed += len(committed)
        for group_id in group_ids:
            self._settle(group_id)
        return []

    def on_time(self, now: Now) -> list[Action]:
        turn = Turn(self.state, now)
        for group_id in self.alarms.take_due(now.monotonic_ms):
            on_group_time(self.state.groups[group_id], turn)
            self._settle(group_id)
        self._check_expiry(turn)
        return turn.actions

    def on_topics_deleted(self, topics: Iterable[NamedTopic], now: Now) -> list[Action]:
        turn = Turn(self.state, now)
        forget_topics(frozenset(topic.name for topic in topics), turn)
        return turn.actions

    def topics(self) -> frozenset[NamedTopic]:
        """The topics of committed offsets, whose records have no ids."""
        offsets = self.state.applied.offsets.values()
        return frozenset(
            NamedTopic(topic_partition.topic, NO_TOPIC_ID)
            for of_group in offsets
            for topic_partition in of_group
        )

    def on_resigned(self) -> list[Reply]:
        waiting = [one for pending in self.state.writes.values() for one in pending.after.take_waiting()]
        for group in self.state.groups.values():
            for member in group.members.values():
                parked = (group.take_join(member), group.take_sync(member))
                waiting.extend(Waiting(*one) for one in parked if one is not None)
        self.state.groups.clear()
        self.state.writes.clear()
        self.alarms = Alarms()
        self.next_check_ms = None
        return [Reply(token, request.refused(ErrorCode.not_coordinator)) for token, request in waiting]

    # -------------------------------------------------------------------------------- upkeep

    def _apply(self, write: Write) -> None:
        applied = self.state.applied
        for record in write.records:
            if write.producer is None:
                applied.apply(record)
            else:
                applied.apply_pending(record, write.producer.producer_id)

    def next_deadline_ms(self) -> MonotonicMs | None:
        deadlines = (self.alarms.next_ms(), self.next_check_ms)
        return min((one for one in deadlines if one is not None), default=None)

    def _check_expiry(self, turn: Turn) -> None:
        """A step of the check, if it is time. The next step follows at once, until all are checked."""
        if self.next_check_ms is None or turn.now.monotonic_ms < self.next_check_ms:
            return
        if not self.unchecked:
            self.unchecked.extend(self.state.groups)
        for _ in range(min(len(self.unchecked), GROUPS_PER_CHECK)):
            group_id = self.unchecked.popleft()
            group = self.state.groups.get(group_id)
            if group is not None:
                expire(group, turn)
                self._settle(group_id)
        if not self.unchecked:
            self.next_check_ms = turn.in_ms(turn.settings.offsets_retention_check_interval_ms)

    def _settle(self, group_id: str | None) -> None:
        """After a step: forget a group of which nothing is known, and set the alarm of any other."""
        group = self.state.groups.get(group_id) if group_id is not None else None
        if group is None:
            return
        if self._is_blank(group):
            del self.state.groups[group.group_id]
            self.alarms.set(group.group_id, None)
        else:
            self.alarms.set(group.group_id, None if group.holds else group.alarm_ms)

    def _is_blank(self, group: Group) -> bool:
        if group.state is not GroupState.EMPTY or group.pending_members:
            return False
        applied = self.state.applied
        is_known = any(
            group.group_id in known for known in (applied.groups, applied.offsets, applied.unstable)
        )
        return not is_known and not group.writes_in_flight

    # ----------------------------------------------------------------------- for those who look

    @property
    def counters(self) -> Counters:
        return self.state.counters

    def counts(self) -> dict[str, int]:
        return asdict(self.state.counters)

    def states(self) -> Counter[GroupState]:
        """How many groups are in each state; may be called while the machine works on another thread."""
        return Counter(group.state for group in list(self.state.groups.values()))

    def applied_state(self) -> dict[GroupKey | OffsetKey, GroupValue | OffsetValue]:
        """What the log below the high watermark says, as its latest record of each key."""
        return self.state.applied.as_records()

    def check_invariants(self) -> None:
        check_partition(self.state)
        for group in self.state.groups.values():
            check_group(group, self.state)


def _answer(token: Token, request: GroupRequest, turn: Turn) -> None:
    match request:
        case requests.Heartbeat():
            heartbeat(token, request, turn)
        case requests.OffsetCommit():
            commit(token, request, turn)
        case requests.TransactionalOffsetCommit():
            commit_in_transaction(token, request, turn)
        case requests.OffsetFetch():
            fetch_offsets(token, request, turn)
        case requests.JoinGroup():
            join(token, request, turn)
        case requests.SyncGroup():
            sync(token, request, turn)
        case requests.LeaveGroup():
            leave(token, request, turn)
        case requests.DescribeGroup():
            describe(token, request, turn)
        case requests.ListGroups():
            list_groups(token, request, turn)
        case requests.DeleteGroup():
            delete_group(token, request, turn)
        case requests.OffsetDelete():
            delete_offsets(token, request, turn)
        case _:
            assert_never(request)
