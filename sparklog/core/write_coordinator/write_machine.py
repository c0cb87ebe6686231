"""All apps of one partition of ``__transaction_state``: the state machine of atomic writes.

A state counts once its record is below the high watermark; until then the shard holds every other request of
the app. Decisions follow from the applied state alone: the markers of all decided members are sent after each
record, and after a load, unless they were sent before.

    OpenWrite --> member --> Write ... Written --> its producer id
    EndWrite  --> prepared, with winners --> Write ... Written --> markers ... all written
                                                 --> Idle(v) --> Write ... Written --> COMMITTED

Signs of life are not written. A new coordinator counts each member as heard just now.

A task's request has the topic ids that its broker knew when the request arrived. It may reach the machine
after the notice of such a topic's deletion, so deletions are remembered for longer than a request lasts.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sparklog.core.coordinator.actions import (
    Action,
    InDoubt,
    Refused,
    Reply,
    StateRecord,
    Tell,
    Token,
    Write,
    WriteId,
    WriteOutcome,
    Written,
)
from sparklog.core.coordinator.alarms import Alarms
from sparklog.core.coordinator.state_machine import Now
from sparklog.core.recent_events import RecentEvents
from sparklog.core.transaction_coordinator.requests import MarkersWritten, VerifyPartitions
from sparklog.core.transaction_coordinator.responses import Answer
from sparklog.core.write_coordinator.app import App, Change
from sparklog.core.write_coordinator.deadlines import has_expired, has_timed_out, next_look_ms, silent_members
from sparklog.core.write_coordinator.ending import (
    WaitsForMarkers,
    aborted_whole,
    completed,
    ended,
    members_aborted,
)
from sparklog.core.write_coordinator.garbage import Garbage
from sparklog.core.write_coordinator.member_verification import verified
from sparklog.core.write_coordinator.opening import opened
from sparklog.core.write_coordinator.records import NO_WRITE_NUMBER, HeadKey
from sparklog.core.write_coordinator.replay import Replay
from sparklog.core.write_coordinator.requests import EndWrite, OpenWrite
from sparklog.core.write_coordinator.responses import EndedWrite
from sparklog.core.write_coordinator.settings import WriteSettings
from sparklog.core.write_coordinator.states import AppState
from sparklog.core.write_coordinator.under_way import PendingChange, UnderWay
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import LeaderEpoch, NamedTopic
from sparklog.model.time import MonotonicMs
from sparklog.model.write_ids import write_and_member
from sparklog.model.write_outcomes import EndOutcome

RETRY_MS: Final = 1_000
"""Pause before a refused record that no client waits for is written again."""

MEMBERS_PER_WRITE: Final = 200
"""Most silent members that one change aborts."""

DELETIONS_KEPT_MS: Final = 60_000
"""The time that a deleted topic is remembered. A request waits for its turn and for a write number, each for
some seconds.
"""

FIRST_WRITE_ID: Final = 1 << 40
"""Beyond those of the machine beside this one."""

SWEEP: Final = ""
"""The key of the removal of garbage, which belongs to no app."""

WriteRequest = OpenWrite | EndWrite | VerifyPartitions | MarkersWritten


@dataclass(slots=True)
class WriteMachine:
    """The apps of one partition, in one leader epoch of its coordinator."""

    settings: WriteSettings
    leader_epoch: LeaderEpoch = LeaderEpoch(0)
    apps: dict[str, App] = field(default_factory=dict)
    """By name, as the log below the high watermark has them."""
    under_way: UnderWay = field(default_factory=UnderWay)
    """At most one change of each app. A new app is here before it is in ``apps``."""
    garbage: Garbage = field(default_factory=Garbage)
    deleted: deque[tuple[MonotonicMs, frozenset[NamedTopic]]] = field(default_factory=deque)
    """Topics deleted within ``DELETIONS_KEPT_MS``, the earliest first. Their ids are never used again."""
    removal_id: WriteId | None = None
    """The write of the tombstones in ``garbage.removing``; None while there are none."""
    alarms: Alarms = field(default_factory=Alarms)
    """The first deadline of each app: a silent member, a time-out, a late commit, its expiry."""
    counters: Counter[str] = field(default_factory=Counter)
    events: RecentEvents = field(default_factory=RecentEvents)
    replayed: Replay = field(default_factory=Replay)
    last_write_id: int = FIRST_WRITE_ID

    # --------------------------------------------------------------------------------- loading

    def replay(self, record: StateRecord) -> None:
        self.replayed.take(record)

    def on_loaded(self, now: Now) -> list[Action]:
        self.apps, orphans = self.replayed.apps(now.monotonic_ms, self.leader_epoch)
        self.replayed = Replay()
        self.garbage.add(orphans)
        actions: list[Action] = []
        for app in list(self.apps.values()):
            actions += [*self._send_markers(app, app.members), *self._go_on(app, now)]
        return [*actions, *self._sweep()]

    # ----------------------------------------------------------------------------------- facts

    def on_request(self, token: Token, request: WriteRequest, now: Now) -> list[Action]:
        name = request.key
        if name in self.under_way.held:
            raise self.events.illegal(f"{request} while a write holds its app")
        app = self.apps.get(name)
        if isinstance(request, OpenWrite | EndWrite) and app and not request.claim.covers(app.head.owner):
            return [Reply(token, request.refused(ErrorCode.transactional_id_authorization_failed))]
        match request:
            case OpenWrite():
                return self._open(token, app, request, now)
            case EndWrite():
                return self._end(token, app, request, now)
            case VerifyPartitions():
                return [Reply(token, verified(app, request))]
            case MarkersWritten():
                return [Reply(token, Answer(ErrorCode.none)), *self._marked(app, request, now)]

    def _open(self, token: Token, app: App | None, request: OpenWrite, now: Now) -> list[Action]:
        if not 0 < request.timeout_ms <= self.settings.timeout_max_ms:
            return [Reply(token, request.refused(ErrorCode.invalid_transaction_timeout))]
        if self._names_what_is_deleted(request, now):
            return [Reply(token, request.refused(ErrorCode.unknown_topic_or_partition))]
        change = opened(app, request, now.wall_ms, self.leader_epoch)
        if isinstance(change, Change):
            return self._write(request.app, change, (token, request))
        if app is not None and change.producer_id >= 0:
            app.hear(write_and_member(change.producer_id)[1], now.monotonic_ms)
        return [Reply(token, change)]

    def _end(self, token: Token, app: App | None, request: EndWrite, now: Now) -> list[Action]:
        change = ended(app, request, now.wall_ms)
        if isinstance(change, Change):
            return self._write(request.app, change, (token, request))
        if app is not None and isinstance(change, WaitsForMarkers):
            self._wait_for_markers(app, token, request, now)
            return self._go_on(app, now)
        return [Reply(token, change)]

    def _marked(self, app: App | None, request: MarkersWritten, now: Now) -> list[Action]:
        """One member has all its markers. The last one of a prepared write completes the write."""
        write_number, number = write_and_member(request.producer_id)
        if app is None or app.head.write_number != write_number or number not in app.marking:
            return []  # a repetition, or of an earlier write
        app.marking.discard(number)
        app.marked.add(number)
        return self._go_on(app, now) if app.is_ending else []

    def on_written(self, write_id: WriteId, outcome: WriteOutcome, now: Now) -> list[Action]:
        if write_id == self.removal_id:
            return self._swept(outcome, now)
        pending = self.under_way.changes.get(write_id)
        if pending is None:
            raise self.events.illegal(f"{outcome} of write {write_id}, which is not under way")
        if isinstance(outcome, InDoubt):
            return [*pending.refused(outcome)]  # the record may still be committed, so the change stays
        self.under_way.remove(write_id)
        if isinstance(outcome, Refused):
            self.events.note(f"{now.monotonic_ms} {pending.app}: {outcome}")
            self.alarms.set(pending.app, _later(now, RETRY_MS))
            return [*pending.refused(outcome)]
        if pending.change is None:
            del self.apps[pending.app]
            self.counters["expired"] += 1
            return []
        return self._applied(pending.app, pending.change, pending.waiting, now)

    def on_time(self, now: Now) -> list[Action]:
        actions: list[Action] = []
        for name in self.alarms.take_due(now.monotonic_ms):
            app = self.apps.get(name)
            if name == SWEEP:
                actions += self._sweep()
            elif app is not None:
                app.has_alarm = False
                actions += [] if name in self.under_way.held else self._look_at(app, now)
        return actions

    def next_deadline_ms(self) -> MonotonicMs | None:
        return self.alarms.next_ms()

    def on_topics_deleted(self, topics: Iterable[NamedTopic], now: Now) -> list[Action]:
        """Note deleted topics: a write with partitions of one cannot be committed any more."""
        gone = frozenset(topics)
        self.deleted.append((now.monotonic_ms, gone))
        self._forget_old_deletions(now)
        changes = self.under_way.of_apps()
        for app in self.apps.values():
            app.lost_topics |= gone & app.topics()
            # Members whose record is not committed yet count, too.
            change = changes.get(app.name)
            joining = () if change is None else change.members.values()
            app.lost_topics |= gone & {topic.named for member in joining for topic in member.topics}
        return []

    def _names_what_is_deleted(self, request: OpenWrite, now: Now) -> bool:
        self._forget_old_deletions(now)
        return any(topic.named in gone for _, gone in self.deleted for topic in request.topics)

    def _forget_old_deletions(self, now: Now) -> None:
        while self.deleted and self.deleted[0][0] + DELETIONS_KEPT_MS < now.monotonic_ms:
            self.deleted.popleft()

    def topics(self) -> frozenset[NamedTopic]:
        loading = {topic.named for member in self.replayed.members.values() for topic in member.topics}
        return frozenset(loading.union(*(app.topics() for app in self.apps.values())))

    def on_resigned(self) -> list[Reply]:
        waiting = [*self.under_way.waiting()]
        waiting += [(token, request) for app in self.apps.values() for token, request, _ in app.waiting]
        for part in (self.apps, self.under_way, self.garbage):
            part.clear()
        self.removal_id = None
        self.alarms = Alarms()
        return [Reply(token, request.refused(ErrorCode.not_coordinator)) for token, request in waiting]

    # ----------------------------------------------------------------------------------- steps

    def _write(
        self, name: str, change: Change | None, waiting: tuple[Token, OpenWrite | EndWrite] | None = None
    ) -> list[Action]:
        app = self.apps.get(name)
        write_number = NO_WRITE_NUMBER if app is None else app.head.write_number
        forgotten = (StateRecord(HeadKey(name), None),)
        records = forgotten if change is None else change.records(name, write_number)
        write_id = self._next_write_id()
        self.under_way.add(write_id, PendingChange(name, change, waiting))
        return [Write(write_id, name, records, holds_key=True)]

    def _next_write_id(self) -> WriteId:
        self.last_write_id += 1
        return WriteId(self.last_write_id)

    def _applied(
        self, name: str, change: Change, waiting: tuple[Token, OpenWrite | EndWrite] | None, now: Now
    ) -> list[Action]:
        app = self.apps.get(name)
        if app is None:
            if change.head is None:
                raise self.events.illegal(f"{change} of {name!r}, which is unknown")
            app = self.apps[name] = App(name, change.head)
        self.garbage.add(app.apply(change, now.monotonic_ms))
        self.counters[change.counts_as] += 1
        actions: list[Action] = []
        if waiting is not None and change.answer is not None:
            actions.append(Reply(waiting[0], change.answer))
        elif waiting is not None and isinstance(waiting[1], EndWrite):
            self._wait_for_markers(app, waiting[0], waiting[1], now)
        if app.head.state is AppState.IDLE:
            actions += [Reply(token, EndedWrite()) for token, _, _ in app.waiting]
            app.waiting.clear()
        # A new head may decide all members; without one, only the changed members can be decided.
        decided = change.members if change.head is None else app.members
        app.has_alarm &= change.head is None
        return [*actions, *self._send_markers(app, decided), *self._go_on(app, now), *self._sweep()]

    def _send_markers(self, app: App, numbers: Iterable[int]) -> list[Action]:
        return [Tell(markers) for markers in app.markers_due(numbers)]

    def _go_on(self, app: App, now: Now) -> list[Action]:
        """Complete the write if it has all its markers; otherwise set its next alarm."""
        if app.is_ending and app.has_all_markers and app.name not in self.under_way.held:
            return self._write(app.name, completed(app, now.wall_ms))
        if not app.has_alarm:
            look_ms = next_look_ms(app, self.settings, now)
            self.alarms.set(app.name, look_ms)
            app.has_alarm = look_ms is not None
        return []

    def _wait_for_markers(self, app: App, token: Token, request: EndWrite, now: Now) -> None:
        app.waiting.append((token, request, _later(now, self.settings.end_wait_ms)))
        app.has_alarm = False

    def _look_at(self, app: App, now: Now) -> list[Action]:
        """The actions that are due, at most one change: its end sets the next alarm."""
        late = [commit for commit in app.waiting if commit[2] <= now.monotonic_ms]
        app.waiting = [commit for commit in app.waiting if commit not in late]
        if has_timed_out(app, now):
            return self._write(app.name, aborted_whole(app, now.wall_ms, None, "timed_out"))
        if has_expired(app, self.settings, now):
            return self._write(app.name, None)
        silent = silent_members(app, self.settings, now)
        if silent:
            return self._write(app.name, members_aborted(app, silent[:MEMBERS_PER_WRITE]))
        not_yet = EndedWrite(outcome=EndOutcome.NOT_VISIBLE_YET)
        return [*(Reply(token, not_yet) for token, _, _ in late), *self._go_on(app, now)]

    # --------------------------------------------------------------------------------- garbage

    def _sweep(self) -> list[Action]:
        """Write the next tombstones of garbage, unless some are in progress."""
        tombstones = self.garbage.begin_removal()
        if not tombstones:
            return []
        self.removal_id = self._next_write_id()
        return [Write(self.removal_id, SWEEP, tombstones, holds_key=False)]

    def _swept(self, outcome: WriteOutcome, now: Now) -> list[Action]:
        if isinstance(outcome, InDoubt):
            return []
        self.removal_id = None
        self.garbage.end_removal(is_removed=isinstance(outcome, Written))
        if isinstance(outcome, Written):
            return self._sweep()
        self.alarms.set(SWEEP, _later(now, RETRY_MS))
        return []

    # ----------------------------------------------------------------------- for those who look

    def counts(self) -> Mapping[str, int]:
        return dict(self.counters)

    def open_writes(self) -> list[App]:
        """The apps with a write that is open or being ended; for any thread, while the machine works."""
        return [app for app in list(self.apps.values()) if app.head.state is not AppState.IDLE]

    def check_invariants(self) -> None:
        self.under_way.check_invariants()
        assert (self.removal_id is None) == (not self.garbage.removing), (self.removal_id, self.garbage)
        for app in self.apps.values():
            app.check_invariants()


def _later(now: Now, span_ms: int) -> MonotonicMs:
    return MonotonicMs(now.monotonic_ms + span_ms)
