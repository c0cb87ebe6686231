"""An app with its present write, as the log below the high watermark has it, and the waiting commits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sparklog.core.coordinator.actions import StateRecord, Token
from sparklog.core.transaction_coordinator.messages import SendMarkers
from sparklog.core.write_coordinator.records import Head, HeadKey, Member, MemberKey
from sparklog.core.write_coordinator.requests import EndWrite
from sparklog.core.write_coordinator.states import STATES_BEFORE, AppState
from sparklog.model.ids import NamedTopic
from sparklog.model.time import MonotonicMs
from sparklog.model.write_ids import MEMBER_EPOCH, producer_id_of
from sparklog.model.write_outcomes import MemberState


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A transition, to be written."""

    head: Head | None = None
    """None leaves the head as it is."""
    members: Mapping[int, Member] = field(default_factory=dict)
    """The changed members, by number."""
    answer: Any = None
    """The answer after the commit; None if the request waits for the end of the write."""
    counts_as: str = "changed"
    """The counter of this transition."""

    def records(self, app: str, write_number: int) -> tuple[StateRecord, ...]:
        """The records of the change. ``write_number`` is the present head's, for a change without a head."""
        number = write_number if self.head is None else self.head.write_number
        members = [
            StateRecord(MemberKey(app, number, member_number), member)
            for member_number, member in self.members.items()
        ]
        return (*(() if self.head is None else (StateRecord(HeadKey(app), self.head),)), *members)


@dataclass(slots=True)
class App:
    """An app. All but ``name``, ``head`` and the alarm is of the write ``head.write_number``."""

    name: str
    head: Head
    members: dict[int, Member] = field(default_factory=dict)
    """By number, aborted members included; empty for an idle app."""
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    """The numbers of ``members`` by run and attempt."""
    heard_ms: dict[int, MonotonicMs] = field(default_factory=dict)
    """The last sign of life of each member; an aborted one may have none."""
    last_sign_ms: MonotonicMs = MonotonicMs(0)
    """The greatest of ``heard_ms``, or the time of the load."""
    marking: set[int] = field(default_factory=set)
    """Members with a requested marker that is not known to be written; disjoint from ``marked``."""
    marked: set[int] = field(default_factory=set)
    """Members that need no marker any more. The write is complete when all ``members`` are here."""
    lost_topics: set[NamedTopic] = field(default_factory=set)
    """Deleted topics of ``members``. The write cannot be committed while there is one."""
    waiting: list[tuple[Token, EndWrite, MonotonicMs]] = field(default_factory=list)
    """Commits that wait for the markers, with their deadlines; empty unless a commit is prepared."""
    next_number: int = 0
    """Greater than all numbers of ``members``, because no number is given twice."""
    has_alarm: bool = False
    """Whether an alarm is set. Joins and heartbeats only move deadlines later, so it is early enough."""

    @property
    def is_ending(self) -> bool:
        return self.head.state in (AppState.PREPARED_COMMIT, AppState.PREPARED_ABORT)

    @property
    def has_all_markers(self) -> bool:
        return len(self.marked) == len(self.members)

    def decision(self, number: int) -> bool | None:
        """Whether the member's rows count; None while the member is undecided."""
        member, head = self.members[number], self.head
        if head.state is AppState.PREPARED_COMMIT:
            return number in head.winners
        is_aborted = member.state is MemberState.ABORTED or member.run in head.aborted_runs
        return False if is_aborted or head.state is AppState.PREPARED_ABORT else None

    def living(self) -> list[int]:
        """The members that may still win."""
        return [number for number in self.members if self.decision(number) is None]

    def topics(self) -> set[NamedTopic]:
        return {topic.named for member in self.members.values() for topic in member.topics}

    def apply(self, change: Change, now_ms: MonotonicMs) -> list[MemberKey]:
        """Take over a committed change. Returns the members of a write that is over, whose records are
        garbage.
        """
        garbage: list[MemberKey] = []
        if change.head is not None:
            before, after = self.head.state, change.head.state
            assert before is after or before in STATES_BEFORE[after], f"{self.name}: from {before} to {after}"
            if change.head.state is AppState.IDLE or change.head.write_number != self.head.write_number:
                garbage = [MemberKey(self.name, self.head.write_number, number) for number in self.members]
                self._forget_the_write()
            self.head = change.head
        for number, member in change.members.items():
            self.put(number, member, now_ms)
        return garbage

    def put(self, number: int, member: Member, now_ms: MonotonicMs) -> None:
        self.members[number] = member
        self.next_number = max(self.next_number, number + 1)
        self.numbers[member.run, member.attempt] = number
        if member.state is not MemberState.ABORTED:
            self.hear(number, now_ms)

    def hear(self, number: int, now_ms: MonotonicMs) -> None:
        self.heard_ms[number] = self.last_sign_ms = now_ms

    def markers_due(self, numbers: Iterable[int]) -> list[SendMarkers]:
        """The unrequested markers of decided members. A member without partitions has none."""
        due: list[SendMarkers] = []
        for number in numbers:
            decision = self.decision(number)
            if decision is None or number in self.marking or number in self.marked:
                continue
            topics = self.members[number].topics
            if topics:
                self.marking.add(number)
                due.append(SendMarkers(self.name, self.producer_id(number), MEMBER_EPOCH, decision, topics))
            else:
                self.marked.add(number)
        return due

    def producer_id(self, number: int) -> int:
        return producer_id_of(self.head.write_number, number)

    def _forget_the_write(self) -> None:
        self.next_number = 0
        for part in (self.members, self.numbers, self.heard_ms):
            part.clear()
        for known in (self.marking, self.marked, self.lost_topics):
            known.clear()

    def check_invariants(self) -> None:
        head, known = self.head, set(self.members)
        assert self.marking | self.marked <= known, (self.marking, self.marked, known)
        assert not self.marking & self.marked, (self.marking, self.marked)
        assert head.state is not AppState.IDLE or not known, (head, known)
        assert head.state is AppState.IDLE or head.version > head.committed_version, head
        assert head.winners <= known, (head.winners, known)
        assert head.state is AppState.PREPARED_COMMIT or not head.winners, head
        assert all(self.members[one].state is MemberState.FINISHED for one in head.winners), self.members
        assert not self.waiting or head.state is AppState.PREPARED_COMMIT, (head, self.waiting)
