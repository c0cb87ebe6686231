"""One group: its members, its generation and what it waits for. Which facts change it, other modules decide.

Everything here but the committed offsets is lost with the coordinator. A new coordinator begins with the last
generation that was written.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from sparklog.core.coordinator.actions import WriteId
from sparklog.core.group.member import Member, WaitingJoin, WaitingSync
from sparklog.core.group.records import GroupValue
from sparklog.core.group.requests import JoinProtocol
from sparklog.core.group.states import STATES_BEFORE, GroupState
from sparklog.model.ids import TopicPartition
from sparklog.model.time import MonotonicMs, WallMs

CONSUMER_PROTOCOL_TYPE: Final = "consumer"


@dataclass(slots=True)
class Group:
    """``protocol_type`` is None until the first member joins. ``protocol`` is that of the generation."""

    group_id: str
    state_timestamp_ms: WallMs
    """When the group came into its state; -1 if an old record did not say."""
    state: GroupState = GroupState.EMPTY
    generation_id: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Member id by instance id."""
    pending_members: dict[str, MonotonicMs] = field(default_factory=dict)
    """Member ids that were given out and have not joined yet, each with the time at which it expires."""
    pending_syncs: set[str] = field(default_factory=set)
    """Members of the generation from which no SyncGroup has arrived."""
    subscribed_topics: frozenset[str] | None = None
    """Topics of the generation's members; None if they are not known."""
    waiting_joins: int = 0
    rebalance_deadline_ms: MonotonicMs | None = None
    """When the rebalance goes on without the members that have not joined."""
    initial_remaining_ms: int | None = None
    """How much longer an empty group's first rebalance may be delayed; None in other rebalances."""
    has_new_member: bool = False
    """Whether a member joined since the initial delay began."""
    sync_deadline_ms: MonotonicMs | None = None
    """When members that have not synchronized are removed."""
    commits_in_flight: Counter[TopicPartition] = field(default_factory=Counter)
    writes_in_flight: int = 0
    holds: dict[WriteId, MonotonicMs] = field(default_factory=dict)
    """Writes for which requests of this group wait in the shard, each with the time at which that began."""
    alarm_ms: MonotonicMs | None = None
    """A lower bound of the group's next deadline."""
    protocol_counts: Counter[str] = field(default_factory=Counter)
    """How many members support each protocol."""

    # ------------------------------------------------------------------------------- questions

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def has_all_joined(self) -> bool:
        return len(self.members) == self.waiting_joins and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of all members' rebalance time-outs."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads ``topic``, and True if the group's topics are not known."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    def supports(self, protocol_type: str, protocols: Iterable[JoinProtocol]) -> bool:
        """Whether a member with these protocols could be in the group."""
        names = [protocol.name for protocol in protocols]
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and names)
        everyone = len(self.members)
        return protocol_type == self.protocol_type and any(
            self.protocol_counts[name] == everyone for name in names
        )

    def select_protocol(self) -> str:
        """The protocol with the most votes among those that all members support."""
        everyone = len(self.members)
        candidates = {name for name, count in self.protocol_counts.items() if count == everyone}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def as_value(self) -> GroupValue:
        """The record of the current generation, with the members' assignments as they are now."""
        members = () if self.protocol is None else self.members.values()
        return GroupValue(
            protocol_type=self.protocol_type or "",
            generation_id=self.generation_id,
            protocol=self.protocol,
            leader=self.leader,
            state_timestamp_ms=self.state_timestamp_ms,
            members=tuple(member.as_value(self.protocol or "") for member in members),
        )

    # --------------------------------------------------------------------------------- members

    def enter(self, state: GroupState, now_ms: WallMs) -> None:
        assert self.state in STATES_BEFORE[state], f"{self.group_id}: from {self.state} to {state}"
        self.state = state
        self.state_timestamp_ms = now_ms

    def add(self, member: Member) -> None:
        """Add a member whose protocols the group supports; the first member is the leader."""
        if not self.members:
            self.leader = member.member_id
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self.protocol_counts.update(name for name, _ in member.protocols)
        self.pending_members.pop(member.member_id, None)
        self.wake_at(member.session_deadline_ms)

    def remove(self, member_id: str) -> Member | None:
        """Remove a member, or forget a pending one. The oldest member follows a leader that was removed."""
        self.pending_members.pop(member_id, None)
        self.pending_syncs.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        self.protocol_counts.subtract(name for name, _ in member.protocols)
        self.protocol_counts += Counter()  # drops the names without members
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member a new member id; its place and its leadership stay."""
        old_member_id, member.member_id = member.member_id, member_id
        self.members = {one.member_id: one for one in self.members.values()}
        assert member.group_instance_id is not None, old_member_id
        self.static_members[member.group_instance_id] = member_id
        if self.leader == old_member_id:
            self.leader = member_id
        if old_member_id in self.pending_syncs:
            self.pending_syncs.remove(old_member_id)
            self.pending_syncs.add(member_id)

    def change_protocols(self, member: Member, protocols: tuple[JoinProtocol, ...]) -> None:
        self.protocol_counts.subtract(name for name, _ in member.protocols)
        self.protocol_counts.update(name for name, _ in protocols)
        self.protocol_counts += Counter()
        member.protocols = protocols

    def park_join(self, member: Member, waiting: WaitingJoin) -> None:
        assert member.waiting_join is None, member.member_id
        member.waiting_join = waiting
        self.waiting_joins += 1

    def take_join(self, member: Member) -> WaitingJoin | None:
        """The member's JoinGroup, which waits no longer; None if none waited."""
        waiting, member.waiting_join = member.waiting_join, None
        self.waiting_joins -= waiting is not None
        return waiting

    def take_sync(self, member: Member) -> WaitingSync | None:
        """The member's SyncGroup, which waits no longer; None if none waited."""
        waiting, member.waiting_sync = member.waiting_sync, None
        return waiting

    # ------------------------------------------------------------------------------------ time

    def wake_at(self, deadline_ms: MonotonicMs) -> None:
        """Lower the alarm to a deadline that was set."""
        if self.alarm_ms is None or deadline_ms < self.alarm_ms:
            self.alarm_ms = deadline_ms

    def next_deadline_ms(self) -> MonotonicMs | None:
        deadlines = [self.rebalance_deadline_ms, self.sync_deadline_ms, *self.pending_members.values()]
        deadlines.extend(member.expires_at_ms() for member in self.members.values())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def hold(self, write_id: WriteId, now_ms: MonotonicMs) -> None:
        """From now on the group's requests wait for the outcome of a write."""
        self.holds.setdefault(write_id, now_ms)

    def release(self, write_id: WriteId, now_ms: MonotonicMs) -> None:
        """The outcome is known. Time in which no request could reach the group does not count."""
        held_since_ms = self.holds.pop(write_id, None)
        if held_since_ms is None or self.holds:
            if held_since_ms is not None:  # the hold that remains covers the time of this one
                self._hold_since(held_since_ms)
            return
        self._delay(now_ms - held_since_ms)
        self.alarm_ms = self.next_deadline_ms()

    def _hold_since(self, since_ms: MonotonicMs) -> None:
        for write_id, began_ms in self.holds.items():
            self.holds[write_id] = min(began_ms, since_ms)

    def _delay(self, span_ms: int) -> None:
        for member in self.members.values():
            member.session_deadline_ms = MonotonicMs(member.session_deadline_ms + span_ms)
        for member_id, deadline_ms in self.pending_members.items():
            self.pending_members[member_id] = MonotonicMs(deadline_ms + span_ms)
        if self.rebalance_deadline_ms is not None:
            self.rebalance_deadline_ms = MonotonicMs(self.rebalance_deadline_ms + span_ms)
        if self.sync_deadline_ms is not None:
            self.sync_deadline_ms = MonotonicMs(self.sync_deadline_ms + span_ms)
