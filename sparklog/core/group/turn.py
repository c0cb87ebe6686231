"""One turn of the group machine: the state that all groups of a partition share, and what this turn does.

A decision that must be in the log before it counts is a ``Write`` with an ``AfterWrite``: an object that says
what happens when the outcome is known.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from sparklog.core.coordinator.actions import (
    Action,
    Producer,
    Reply,
    StateRecord,
    Token,
    Write,
    WriteId,
    WriteOutcome,
)
from sparklog.core.coordinator.state_machine import Now
from sparklog.core.group.applied import AppliedState
from sparklog.core.group.group import Group
from sparklog.core.group.records import GroupKey
from sparklog.core.group.requests import GroupRequest
from sparklog.core.group.settings import GroupSettings
from sparklog.core.group.states import GroupState
from sparklog.core.producers.latest_connections import LatestConnections
from sparklog.core.recent_events import RecentEvents
from sparklog.model.errors import ErrorCode
from sparklog.model.time import MonotonicMs

SubscribedTopics = Callable[[bytes], frozenset[str] | None]
"""The topics that a subscription of the ``consumer`` protocol names; None if the bytes are none."""


class Waiting(NamedTuple):
    """A request that is not answered yet."""

    token: Token
    request: GroupRequest


class AfterWrite(Protocol):
    """What to do when the outcome of a write is known. The records of ``Written`` are applied already."""

    def on_outcome(self, outcome: WriteOutcome, turn: "Turn") -> None:
        """Called once with a final outcome, and before that perhaps once with ``InDoubt``."""

    def take_waiting(self) -> list[Waiting]:
        """The requests that wait for this write; they are answered by the caller."""


class PendingWrite(NamedTuple):
    write: Write
    after: AfterWrite


@dataclass(slots=True)
class Counters:
    """How often things have happened since the coordinator loaded; for metrics."""

    rebalances: int = 0
    offsets_committed: int = 0
    offsets_expired: int = 0
    offsets_deleted: int = 0


@dataclass(slots=True)
class PartitionState:
    """All groups of one partition of ``__consumer_offsets``, and the writes that are under way."""

    settings: GroupSettings
    subscribed_topics: SubscribedTopics
    applied: AppliedState = field(default_factory=AppliedState)
    groups: dict[str, Group] = field(default_factory=dict)
    writes: dict[WriteId, PendingWrite] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    events: RecentEvents = field(default_factory=RecentEvents)
    last_write_id: int = 0
    guards: dict[int, int] = field(default_factory=dict)
    """By producer id, the attempt to verify its transaction that no end has made void."""
    last_guard: int = 0
    verified_epochs: dict[int, int] = field(default_factory=dict)
    """By producer id, the epoch whose open transaction has passed a verification here."""
    connections: LatestConnections = field(default_factory=LatestConnections)
    """The connections of producers that commit in transactions."""

    def find_topics(self, group: Group) -> None:
        """Set the topics to which the members of the generation are subscribed (KIP-211)."""
        topics: frozenset[str] = frozenset()
        group.subscribed_topics = None
        if not group.is_consumer_group:
            return
        for member in group.members.values():
            of_member = self.subscribed_topics(member.metadata(group.protocol)) if group.protocol else None
            if of_member is None:
                return
            topics |= of_member
        group.subscribed_topics = topics


@dataclass(slots=True)
class Turn:
    """The state, the time, and the actions so far."""

    state: PartitionState
    now: Now
    actions: list[Action] = field(default_factory=list)

    @property
    def settings(self) -> GroupSettings:
        return self.state.settings

    def in_ms(self, span_ms: int) -> MonotonicMs:
        return MonotonicMs(self.now.monotonic_ms + span_ms)

    def reply(self, token: Token, response: Any) -> None:
        self.actions.append(Reply(token, response))

    def refuse(self, waiting: Iterable[Waiting], error: ErrorCode) -> None:
        for token, request in waiting:
            self.reply(token, request.refused(error))

    def write(
        self,
        group: Group,
        records: tuple[StateRecord, ...],
        after: AfterWrite,
        *,
        holds_key: bool,
        producer: Producer | None = None,
    ) -> None:
        self.state.last_write_id += 1
        write_id = WriteId(self.state.last_write_id)
        write = Write(write_id, group.group_id, records, holds_key, producer)
        self.state.writes[write_id] = PendingWrite(write, after)
        group.writes_in_flight += 1
        if holds_key:
            group.hold(write_id, self.now.monotonic_ms)
        self.actions.append(write)

    def group_record(self, group: Group) -> StateRecord:
        return StateRecord(GroupKey(group.group_id), group.as_value())

    def missing_records(self, group: Group) -> list[StateRecord]:
        """The record of an empty generation, if the log refused it and still names members.

        It goes before the next records of the group. Otherwise those members, revived by the next
        coordinator, could commit over what an outsider has changed.
        """
        written = self.state.applied.groups.get(group.group_id)
        is_missing = group.state is GroupState.EMPTY and written is not None and bool(written.members)
        return [self.group_record(group)] if is_missing else []

    def note(self, group: Group, what: str) -> None:
        self.state.events.note(f"{self.now.monotonic_ms} {group.group_id}: {what}")
