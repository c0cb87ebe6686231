"""The life of one coordinator on one partition of its internal topic, in one leader epoch. Pure.

    loading --------------------> active --------------------> resigned
     the log is replayed           requests are passed to       NOT_COORDINATOR
     into a fresh machine          the state machine

The shard stands between the outside and a ``StateMachine``:

    request --> [epoch in doubt: waits] --> [key held: waits] --> machine --> Reply
                                                                     |
                                                                     v
    outcome <-- one append at a time <-- next batch <------------- Write

**Writes.** One append is in flight at a time; writes that arrive meanwhile form the next batch. An append
whose outcome is unknown is *in doubt*: it may still be committed. The machine neither applies nor forgets it,
requests of its keys wait, and it is settled when the high watermark passes its end. Another leader epoch
settles it too, because a new shard reads the log anew.

**Held keys.** While a write holds its key, or is in doubt, requests of that key wait in order. One that has
waited for ``wait_max_ms`` is answered COORDINATOR_NOT_AVAILABLE, and never reaches the machine.

**Standstill.** A request that meets a leader epoch in doubt (``Attention``) waits until ZooKeeper has
confirmed the epoch, as long as above. A new shard begins in doubt, because the message that made it leader
may be old.

The caller serialises all calls, and carries out the returned actions in order.
"""

import enum
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sparklog.core.coordinator.actions import (
    Action,
    InDoubt,
    Producer,
    Refused,
    Reply,
    StateRecord,
    Tell,
    Token,
    Write,
    WriteOutcome,
    Written,
)
from sparklog.core.coordinator.attention import Attention
from sparklog.core.coordinator.state_machine import Now, Request, StateMachine
from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.ids import NamedTopic
from sparklog.model.time import MonotonicMs

RECORD_OVERHEAD_BYTES: Final = 32
"""More than a record's own fields take beside its key and value."""

BATCH_OVERHEAD_BYTES: Final = 61

NEVER_CONFIRMED: Final = -1


KeyAndValue = tuple[bytes, bytes | None]
"""A record as it is appended; value None is a tombstone."""

Encode = Callable[[StateRecord], KeyAndValue]
"""Raises WireError if the record's format has no room for it."""


@dataclass(frozen=True, slots=True)
class Append:
    """Append ``records`` as one batch with acks=all, in this leader epoch. Outcome: ``on_appended``."""

    append_id: int
    records: tuple[KeyAndValue, ...]
    producer: Producer | None = None
    """In whose transaction; None for none."""


@dataclass(frozen=True, slots=True)
class ConfirmEpoch:
    """Ask ZooKeeper whether the leader epoch is current. Outcome: ``on_confirmed``, or ``resign``."""


ShardAction = Reply | Tell | Append | ConfirmEpoch


@dataclass(frozen=True, slots=True)
class Committed:
    """The append is below the high watermark. ``end_offset``: the one after its records."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class NotAppended:
    """The records are certainly not in the log."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class MayBeCommitted:
    """The records are in this leader's log. ``end_offset`` None: perhaps, because its disk failed."""

    error: ErrorCode
    end_offset: int | None


AppendOutcome = Committed | NotAppended | MayBeCommitted


class Phase(enum.Enum):
    loading = "loading"
    active = "active"
    resigned = "resigned"


class _Waiting(NamedTuple):
    """A request that waits before it reaches the machine."""

    token: Token
    request: Request[Any]
    deadline_ms: MonotonicMs


class _QueuedWrite(NamedTuple):
    write: Write
    records: tuple[KeyAndValue, ...]
    size_bytes: int


class _End(NamedTuple):
    """The end of a producer's transaction. ``offset``: of its marker."""

    offset: int
    producer_id: int
    is_commit: bool


class _Doubt(NamedTuple):
    """An append that may still be committed."""

    end_offset: int | None
    writes: tuple[Write, ...]


class Shard:
    """One coordinator. ``batch_bytes_max`` is the topic's ``max.message.bytes``; the caller keeps it current.

    ``wait_max_ms``: the longest wait of a request for its turn.
    """

    def __init__(
        self,
        machine: StateMachine,
        attention: Attention,
        *,
        encode: Encode,
        wait_max_ms: int,
        batch_bytes_max: int,
    ) -> None:
        self.machine: Final = machine
        self.phase = Phase.loading
        self.batch_bytes_max = batch_bytes_max
        self.is_asked_for = False
        """Whether a client has asked for one of its keys while it was loading."""
        self._attention = attention
        self._encode = encode
        self._wait_max_ms = wait_max_ms
        self._confirmed = NEVER_CONFIRMED
        """The number of standstills at the last confirmation."""
        self._asks_confirmation = False
        self._unconfirmed: deque[_Waiting] = deque()
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._holds: Counter[str] = Counter()
        """By key: its writes that hold it or are in doubt."""
        self._freed: deque[str] = deque()
        """Keys that were released a moment ago, and for which requests may wait."""
        self._queue: deque[_QueuedWrite] = deque()
        self._in_flight: tuple[int, tuple[Write, ...]] | None = None
        self._in_doubt: deque[_Doubt] = deque()
        self._ends: list[_End] = []
        """Ends of transactions that wait for the load, or for the outcome of the append in flight."""
        self._appends = 0

    # Facts for metrics, and for what the caller has to wait for

    @property
    def requests_held(self) -> int:
        return len(self._unconfirmed) + sum(map(len, tuple(self._waiting.values())))

    @property
    def has_append_in_flight(self) -> bool:
        return self._in_flight is not None

    @property
    def writes_in_doubt(self) -> int:
        return sum(len(doubt.writes) for doubt in tuple(self._in_doubt))

    @property
    def has_doubt_to_settle(self) -> bool:
        """Whether ``on_high_watermark`` may settle something."""
        return any(doubt.end_offset is not None for doubt in tuple(self._in_doubt))

    def next_deadline_ms(self) -> MonotonicMs | None:
        """When ``on_time`` has something to do next."""
        firsts = [queue[0].deadline_ms for queue in (self._unconfirmed, *self._waiting.values()) if queue]
        if self.phase is Phase.active and not self._asks_confirmation:
            deadline_ms = self.machine.next_deadline_ms()
            firsts += [] if deadline_ms is None else [deadline_ms]
        return min(firsts, default=None)

    # Life

    def begin(self) -> list[ShardAction]:
        """The shard exists: have its epoch confirmed while it loads."""
        return self._ask_confirmation()

    def on_loaded(self, now: Now) -> list[ShardAction]:
        """The whole log was replayed into ``machine``."""
        if self.phase is not Phase.loading:
            return []
        self.phase = Phase.active
        actions = list(self.machine.on_loaded(now))
        return self._go_on([*actions, *self._end_before(None, now)], now)

    def on_confirmed(self, standstills: int, now: Now) -> list[ShardAction]:
        """ZooKeeper has confirmed the epoch, in a read that began after ``standstills``."""
        if self.phase is Phase.resigned:
            return []
        self._confirmed = max(self._confirmed, standstills)
        self._asks_confirmation = False
        if not self._is_confirmed(now):
            return self._ask_confirmation() if self._unconfirmed else []
        waiting, self._unconfirmed = self._unconfirmed, deque()
        return [
            action
            for token, request, _ in waiting
            for action in self._go_on(self._admit(token, request, now), now)
        ]

    def resign(self) -> list[ShardAction]:
        """The epoch is over. All waiting requests are answered NOT_COORDINATOR; every later fact is void."""
        if self.phase is Phase.resigned:
            return []
        was_active, self.phase = self.phase is Phase.active, Phase.resigned
        waiting = [*self._unconfirmed, *(one for queue in self._waiting.values() for one in queue)]
        self._unconfirmed.clear()
        self._waiting.clear()
        self._holds.clear()
        self._queue.clear()
        self._in_doubt.clear()
        self._in_flight = None
        self._ends.clear()
        refusals = [Reply(one.token, one.request.refused(ErrorCode.not_coordinator)) for one in waiting]
        return [*refusals, *(self.machine.on_resigned() if was_active else ())]

    # Requests

    def on_request(self, token: Token, request: Request[Any], now: Now) -> list[ShardAction]:
        """Answer the request, now or later."""
        if (invalid := request.invalid()) is not None:
            return [Reply(token, invalid)]
        if self.phase is Phase.resigned:
            return [Reply(token, request.refused(ErrorCode.not_coordinator))]
        if self.phase is Phase.loading:
            self.is_asked_for = self.is_asked_for or request.key is not None
            return [Reply(token, request.while_loading())]
        if self._unconfirmed or not self._is_confirmed(now):
            self._unconfirmed.append(self._wait(token, request, now))
            return self._ask_confirmation()
        return self._go_on(self._admit(token, request, now), now)

    def on_topics_deleted(self, topics: Iterable[NamedTopic], now: Now) -> list[ShardAction]:
        """These topics are gone. A loading shard must be notified after it has loaded."""
        if self.phase is not Phase.active:
            return []
        return self._go_on(self.machine.on_topics_deleted(topics, now), now)

    def on_time(self, now: Now) -> list[ShardAction]:
        """Everything whose time has come. While the epoch is in doubt, only waiting requests time out.
        Members do not: their heartbeats may have been lost.
        """
        if self.phase is Phase.resigned:
            return []
        refusals: list[ShardAction] = []
        for queue in (self._unconfirmed, *self._waiting.values()):
            while queue and queue[0].deadline_ms <= now.monotonic_ms:
                late = queue.popleft()
                refusals.append(Reply(late.token, late.request.refused(ErrorCode.coordinator_not_available)))
        self._waiting = {key: queue for key, queue in self._waiting.items() if queue}
        if self.phase is Phase.loading:
            return refusals
        if not self._is_confirmed(now):
            return [*refusals, *self._ask_confirmation()]
        deadline_ms = self.machine.next_deadline_ms()
        is_due = deadline_ms is not None and deadline_ms <= now.monotonic_ms
        return [*refusals, *self._go_on(self.machine.on_time(now) if is_due else [], now)]

    # Writes

    def on_appended(self, append_id: int, outcome: AppendOutcome, now: Now) -> list[ShardAction]:
        """What became of an ``Append``."""
        if self._in_flight is None or self._in_flight[0] != append_id:
            return []
        _, writes = self._in_flight
        self._in_flight = None
        match outcome:
            case Committed(end_offset):
                actions = self._end_before(end_offset, now)
                actions += [*self._settle(end_offset, now), *self._conclude(writes, Written(), now)]
            case NotAppended(error):
                actions = self._conclude(writes, Refused(error), now)
            case MayBeCommitted(error, end_offset):
                actions = self._end_before(end_offset, now)
                actions += self._doubt(_Doubt(end_offset, writes), error, now)
        return self._go_on([*actions, *self._end_before(None, now)], now)

    def on_end(self, producer_id: int, is_commit: bool, offset: int, now: Now) -> list[ShardAction]:
        """The marker at ``offset`` is below the high watermark. Ends of one producer come in order.

        While the outcome of an append is unknown, so is whether the marker precedes or follows its records.
        """
        if self.phase is Phase.resigned:
            return []
        self._ends.append(_End(offset, producer_id, is_commit))
        if self.phase is Phase.loading or self._in_flight is not None:
            return []
        return self._go_on(self._end_before(None, now), now)

    def _end_before(self, end_offset: int | None, now: Now) -> list[Action]:
        """Pass on the ends whose markers are below ``end_offset``; None: all of them."""
        due = [end for end in self._ends if end_offset is None or end.offset < end_offset]
        self._ends = [end for end in self._ends if end not in due]
        actions: list[Action] = []
        for offset, producer_id, is_commit in due:
            actions += self._settle(offset, now)
            actions += self.machine.on_end(producer_id, is_commit, now)
        return actions

    def on_high_watermark(self, offset: int, now: Now) -> list[ShardAction]:
        """The high watermark is at least ``offset``, in this leader epoch."""
        return self._go_on(self._settle(offset, now), now)

    def _doubt(self, doubt: _Doubt, error: ErrorCode, now: Now) -> list[Action]:
        """Hold the keys of all writes of an append that may still be committed."""
        self._in_doubt.append(doubt)
        self._holds.update(write.key for write in doubt.writes if not write.holds_key)
        outcome = InDoubt(error)
        return [
            action
            for write in doubt.writes
            for action in self.machine.on_written(write.write_id, outcome, now)
        ]

    def _settle(self, offset: int, now: Now) -> list[Action]:
        """Appends that were in doubt are committed up to ``offset``."""
        actions: list[Action] = []
        while self._in_doubt and (end := self._in_doubt[0].end_offset) is not None and end <= offset:
            writes = self._in_doubt.popleft().writes
            for write in writes:
                if not write.holds_key:
                    self._release(write.key)
            actions += self._conclude(writes, Written(), now)
        return actions

    def _conclude(self, writes: Sequence[Write], outcome: WriteOutcome, now: Now) -> list[Action]:
        """Pass the final outcome of ``writes`` to the machine."""
        actions: list[Action] = []
        for write in writes:
            if write.holds_key:
                self._release(write.key)
            actions += self.machine.on_written(write.write_id, outcome, now)
        return actions

    # Details

    def _is_confirmed(self, now: Now) -> bool:
        return self._attention.standstills(now.monotonic_ms) == self._confirmed

    def _ask_confirmation(self) -> list[ShardAction]:
        if self._asks_confirmation:
            return []
        self._asks_confirmation = True
        return [ConfirmEpoch()]

    def _wait(self, token: Token, request: Request[Any], now: Now) -> _Waiting:
        return _Waiting(token, request, MonotonicMs(now.monotonic_ms + self._wait_max_ms))

    def _admit(self, token: Token, request: Request[Any], now: Now) -> list[Action]:
        """Pass a request to the machine, unless its key is held, or others of its key wait."""
        key = request.key
        if key is not None and (key in self._holds or key in self._waiting):
            self._waiting.setdefault(key, deque()).append(self._wait(token, request, now))
            return []
        return self.machine.on_request(token, request, now)

    def _release(self, key: str) -> None:
        self._holds[key] -= 1
        if not self._holds[key]:
            del self._holds[key]
            self._freed.append(key)

    def _go_on(self, actions: Iterable[Action], now: Now) -> list[ShardAction]:
        """Carry out the machine's actions, pass on requests whose keys are free, begin the next append."""
        outward: list[ShardAction] = []
        pending = deque(actions)
        while pending or self._freed:
            if not pending:
                pending += self._first_waiting(self._freed.popleft(), now)
                continue
            action = pending.popleft()
            if isinstance(action, Reply | Tell):
                outward.append(action)
            else:
                pending += self._enqueue(action, now)
        return [*outward, *self._next_append()]

    def _first_waiting(self, key: str, now: Now) -> list[Action]:
        """Pass on the first request that waits for ``key``, if the key is still free."""
        queue = self._waiting.get(key)
        if queue is None or key in self._holds:
            return []
        token, request, _ = queue.popleft()
        if queue:
            self._freed.append(key)  # for the next one, once the actions of this one are carried out
        else:
            del self._waiting[key]
        return self.machine.on_request(token, request, now)

    def _enqueue(self, write: Write, now: Now) -> list[Action]:
        """Queue a write; one that is larger than a batch may be is refused at once."""
        try:
            records = tuple(map(self._encode, write.records))
        except WireError:
            return self._refuse_too_large(write, now)
        size_bytes = sum(_size_bytes(key, value) for key, value in records)
        if BATCH_OVERHEAD_BYTES + size_bytes > self.batch_bytes_max:
            return self._refuse_too_large(write, now)
        if write.holds_key:
            self._holds[write.key] += 1
        self._queue.append(_QueuedWrite(write, records, size_bytes))
        return []

    def _refuse_too_large(self, write: Write, now: Now) -> list[Action]:
        return self.machine.on_written(write.write_id, Refused(ErrorCode.message_too_large), now)

    def _next_append(self) -> list[ShardAction]:
        """The append of as many queued writes as fit into a batch, unless one is in flight."""
        if self._in_flight is not None or not self._queue:
            return []
        writes, records = list[Write](), list[KeyAndValue]()
        left_bytes = self.batch_bytes_max - BATCH_OVERHEAD_BYTES
        producer = self._queue[0].write.producer
        while (
            self._queue
            and (not writes or self._queue[0].size_bytes <= left_bytes)
            and self._queue[0].write.producer == producer
        ):
            write, encoded, size_bytes = self._queue.popleft()
            writes.append(write)
            records += encoded
            left_bytes -= size_bytes
        self._appends += 1
        self._in_flight = (self._appends, tuple(writes))
        return [Append(self._appends, tuple(records), producer)]

    def check_invariants(self) -> None:
        """What holds after every fact; raises AssertionError."""
        holding = Counter(queued.write.key for queued in self._queue if queued.write.holds_key)
        if self._in_flight is not None:
            holding.update(write.key for write in self._in_flight[1] if write.holds_key)
        holding.update(write.key for doubt in self._in_doubt for write in doubt.writes)
        if self.phase is not Phase.resigned:
            assert self._holds == holding, (self._holds, holding)
        assert all(self._waiting.values()), self._waiting
        assert set(self._waiting) <= set(self._holds), (self._waiting, self._holds)
        assert self._in_flight is not None or not self._queue, self._queue
        ends = [doubt.end_offset for doubt in self._in_doubt if doubt.end_offset is not None]
        assert ends == sorted(ends), ends
        if self.phase is Phase.active:
            self.machine.check_invariants()


def _size_bytes(key: bytes, value: bytes | None) -> int:
    """At least what the record takes in a batch."""
    return RECORD_OVERHEAD_BYTES + len(key) + len(value or b"")
