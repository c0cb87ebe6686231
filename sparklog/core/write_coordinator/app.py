"""An app with its present write, as the log below the high watermark has it, and what waits for it."""

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
    """A transition that is to be written. ``head`` None leaves the head as it is.

    ``members`` by number. ``answer``: for the request that caused it, once it is committed; None if the
    request waits for the end of the write.
    """

    head: Head | None = None
    members: Mapping[int, Member] = field(default_factory=dict)
    answer: Any = None
    counts_as: str = "changed"

    def records(self, app: str, write_number: int) -> tuple[StateRecord, ...]:
        """``write_number`` of the present head, if the change has none."""
        number = write_number if self.head is None else self.head.write_number
        members = [StateRecord(MemberKey(app, number, one), member) for one, member in self.members.items()]
        return (*(() if self.head is None else (StateRecord(HeadKey(app), self.head),)), *members)


@dataclass(slots=True)
class App:
    """``members`` are those of the write ``head.write_number``, aborted ones included: their numbers are not
    given out again. ``waiting``: commits that wait for the markers, each with its deadline.
    """

    name: str
    head: Head
    members: dict[int, Member] = field(default_factory=dict)
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    """By run and attempt."""
    heard_ms: dict[int, MonotonicMs] = field(default_factory=dict)
    """The last sign of life of each member."""
    last_sign_ms: MonotonicMs = MonotonicMs(0)
    """That of any member."""
    marking: set[int] = field(default_factory=set)
    """Members whose markers were asked for, and are not known to be written."""
    marked: set[int] = field(default_factory=set)
    lost_topics: set[NamedTopic] = field(default_factory=set)
    waiting: list[tuple[Token, EndWrite, MonotonicMs]] = field(default_factory=list)
    next_number: int = 0
    """The next member's, unless its producer ids are used up."""
    has_alarm: bool = False
    """Whether an alarm is set. Joins and heartbeats only move deadlines later, so it is early enough."""

    @property
    def is_ending(self) -> bool:
        return self.head.state in (AppState.PREPARED_COMMIT, AppState.PREPARED_ABORT)

    @property
    def has_all_markers(self) -> bool:
        return len(self.marked) == len(self.members)

    def decision(self, number: int) -> bool | None:
        """Whether the member's rows count; None while that is open."""
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
        """The change is committed. Returns the members of a write that is over: their records are garbage."""
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
        """Those of the members whose end is decided, and which were not asked for before. A member without
        partitions needs none.
        """
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
