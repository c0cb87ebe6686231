"""All transactional ids of one partition of ``__transaction_state``: the state machine that a shard drives.

A state counts once its record is below the high watermark. While a record is on its way the shard holds every
request of its id, so that an id has one transition at a time:

    request --> transition --> Write(record) ...... Written --> applied --> Reply, SendMarkers

No marker leaves before the decision is committed, and ``MarkersWritten`` writes the Complete record after the
last one. A machine that has loaded sends the markers of every decision that it finds without one.

An open transaction that is older than its time-out is aborted in an epoch that nobody has, so that nothing
its producer still sends can enter the next transaction. An id without an open transaction that has not
changed for ``transactional.id.expiration.ms`` is forgotten, with a tombstone.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

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
from sparklog.core.producers.latest_connections import LATE, LatestConnections
from sparklog.core.recent_events import RecentEvents
from sparklog.core.transaction_coordinator.initialisation import fenced, initialised
from sparklog.core.transaction_coordinator.messages import SendMarkers
from sparklog.core.transaction_coordinator.records import TransactionKey, TransactionValue
from sparklog.core.transaction_coordinator.requests import (
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducerId,
    ListTransactions,
    MarkersWritten,
    TransactionRequest,
    VerifyPartitions,
)
from sparklog.core.transaction_coordinator.responses import (
    Answer,
    DescribedTransaction,
    InitializedProducer,
    ListedTransactions,
)
from sparklog.core.transaction_coordinator.settings import TransactionSettings
from sparklog.core.transaction_coordinator.states import AT_REST, ENDING, STATES_BEFORE, TransactionState
from sparklog.core.transaction_coordinator.transitions import completed, ended, verified, with_partitions
from sparklog.core.transaction_coordinator.write_errors import write_error
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NamedTopic
from sparklog.model.time import MonotonicMs

RETRY_MS: Final = 1_000
"""Pause before the log is asked again to take the abort of a transaction that timed out."""

IDS_PER_CHECK: Final = 500
"""Ids that are checked for expiry in one step, so that requests need not wait for thousands."""


@dataclass(slots=True)
class _Pending:
    """A transition that is being written. ``waiting``: who is answered ``answer`` when it is in the log."""

    transactional_id: str
    value: TransactionValue | None
    waiting: tuple[Token, TransactionRequest] | None
    answer: Any
    counts_as: str


@dataclass(slots=True)
class TransactionMachine:
    """The transactional ids of one partition, in one leader epoch of its coordinator."""

    settings: TransactionSettings
    values: dict[str, TransactionValue] = field(default_factory=dict)
    """The applied state: what the log below the high watermark says."""
    writes: dict[WriteId, _Pending] = field(default_factory=dict)
    """At most one for each id."""
    held: set[str] = field(default_factory=set)
    """The ids of ``writes``."""
    alarms: Alarms = field(default_factory=Alarms)
    """When open transactions time out."""
    counters: Counter[str] = field(default_factory=Counter)
    events: RecentEvents = field(default_factory=RecentEvents)
    next_check_ms: MonotonicMs | None = None
    unchecked: deque[str] = field(default_factory=deque)
    producers_before_loss: frozenset[int] = frozenset()
    """Producer ids that get no further epoch: see ``replay_loss``."""
    last_write_id: int = 0
    connections: LatestConnections = field(default_factory=LatestConnections)

    # --------------------------------------------------------------------------------- loading

    def replay(self, record: StateRecord) -> None:
        transactional_id = record.key.transactional_id
        if record.value is None:
            self.values.pop(transactional_id, None)
        else:
            self.values[transactional_id] = record.value

    def replay_pending(self, record: StateRecord, producer_id: int) -> None:
        """Nobody writes to ``__transaction_state`` in a transaction."""

    def replay_end(self, producer_id: int, is_commit: bool) -> None:
        """As ``replay_pending``."""

    def replay_loss(self) -> None:
        """Later epochs of the producer ids that the machine has may have been given and used."""
        self.producers_before_loss = frozenset(value.producer_id for value in self.values.values())

    def on_end(self, producer_id: int, is_commit: bool, now: Now) -> list[Action]:
        """As ``replay_pending``."""
        return []

    def on_loaded(self, now: Now) -> list[Action]:
        self.next_check_ms = _later(now, self.settings.expiration_check_interval_ms)
        for transactional_id in self.values:
            self._set_alarm(transactional_id, now)
        return [
            _markers(transactional_id, value)
            for transactional_id, value in self.values.items()
            if value.state in ENDING
        ]

    # ----------------------------------------------------------------------------------- facts

    def on_request(self, token: Token, request: TransactionRequest, now: Now) -> list[Action]:
        if request.key in self.held:
            raise self.events.illegal(f"{request} while a write holds its id")
        match request:
            case InitProducerId():
                return self._initialise(token, request, now)
            case AddPartitions() | EndTransaction() if self._is_late(request):
                return [Reply(token, LATE)]
            case AddPartitions():
                moved = with_partitions(self.values.get(request.key), request, now.wall_ms)
                return self._move(token, request, moved, now)
            case EndTransaction():
                moved = ended(self.values.get(request.key), request, now.wall_ms)
                return self._move(token, request, moved, now)
            case MarkersWritten():
                done = completed(self.values.get(request.key), request, now.wall_ms)
                counts_as = "committed" if request.is_commit else "aborted"
                return self._move(
                    token, request, ErrorCode.none if done is None else done, now, counts_as=counts_as
                )
            case VerifyPartitions():
                return [Reply(token, verified(self.values.get(request.key), request))]
            case DescribeTransaction():
                return [Reply(token, self._described(request))]
            case ListTransactions():
                return [Reply(token, self.listed(request))]

    def on_written(self, write_id: WriteId, outcome: WriteOutcome, now: Now) -> list[Action]:
        pending = self.writes.get(write_id)
        if pending is None:
            raise self.events.illegal(f"{outcome} of write {write_id}, which is not under way")
        actions: list[Action] = []
        waiting, pending.waiting = pending.waiting, None
        if waiting is not None:
            token, request = waiting
            failed = isinstance(outcome, Refused | InDoubt)
            actions.append(Reply(token, request.refused(write_error(outcome)) if failed else pending.answer))
        if isinstance(outcome, InDoubt):
            return actions
        del self.writes[write_id]
        transactional_id, value = pending.transactional_id, pending.value
        self.held.discard(transactional_id)
        if not isinstance(outcome, Written):
            self.events.note(f"{now.monotonic_ms} {transactional_id}: {outcome}")
            self._set_alarm(transactional_id, now, at_least_in_ms=RETRY_MS)
            return actions
        self.counters[pending.counts_as] += 1
        self.replay(StateRecord(TransactionKey(transactional_id), value))
        self._set_alarm(transactional_id, now)
        if value is not None and value.state in ENDING:
            actions.append(_markers(transactional_id, value))
        return actions

    def on_time(self, now: Now) -> list[Action]:
        actions: list[Action] = []
        for transactional_id in self.alarms.take_due(now.monotonic_ms):
            aborted = fenced(self.values[transactional_id], now.wall_ms)
            actions += self._write(transactional_id, aborted, counts_as="timed_out")
        return [*actions, *self._check_expiry(now)]

    def on_topics_deleted(self, topics: Iterable[NamedTopic], now: Now) -> list[Action]:
        """Nothing changes: the shell finds out when it looks for the partitions' leaders."""
        return []

    def topics(self) -> frozenset[NamedTopic]:
        return frozenset()

    def on_resigned(self) -> list[Reply]:
        waiting = [pending.waiting for pending in self.writes.values() if pending.waiting is not None]
        self.values.clear()
        self.writes.clear()
        self.held.clear()
        self.alarms = Alarms()
        self.next_check_ms = None
        return [Reply(token, request.refused(ErrorCode.not_coordinator)) for token, request in waiting]

    # -------------------------------------------------------------------------------- requests

    def _initialise(self, token: Token, request: InitProducerId, now: Now) -> list[Action]:
        if not 0 < request.timeout_ms <= self.settings.timeout_max_ms:
            return [Reply(token, request.refused(ErrorCode.invalid_transaction_timeout))]
        value = self.values.get(request.key)
        is_used_up = value is not None and value.producer_id in self.producers_before_loss
        moved = initialised(value, request, now.wall_ms, is_used_up=is_used_up)
        if isinstance(moved, InitializedProducer):
            return [Reply(token, moved)]
        if moved.state is TransactionState.PREPARE_ABORT:
            answer, counts_as = request.refused(ErrorCode.concurrent_transactions), "fenced"
        else:
            answer = InitializedProducer(ErrorCode.none, moved.producer_id, moved.producer_epoch)
            counts_as = "initialised"
        return self._write(request.key, moved, (token, request), answer, counts_as)

    def _move(
        self,
        token: Token,
        request: AddPartitions | EndTransaction | MarkersWritten,
        moved: TransactionValue | ErrorCode,
        now: Now,
        *,
        counts_as: str = "moved",
    ) -> list[Action]:
        if isinstance(moved, ErrorCode):
            return [Reply(token, Answer(moved))]
        return self._write(request.key, moved, (token, request), Answer(ErrorCode.none), counts_as)

    def _is_late(self, request: AddPartitions | EndTransaction) -> bool:
        """Its producer has sent it again since, and may be in the next transaction by now."""
        sender = (type(request), request.transactional_id)
        return self.connections.is_late(sender, request.producer_epoch, request.connection)

    def _described(self, request: DescribeTransaction) -> DescribedTransaction:
        value = self.values.get(request.key)
        if value is None:
            return request.refused(ErrorCode.transactional_id_not_found)
        return DescribedTransaction(ErrorCode.none, request.transactional_id, value)

    def listed(self, request: ListTransactions) -> ListedTransactions:
        return ListedTransactions(
            transactions=tuple(
                (transactional_id, value)
                for transactional_id, value in self.values.items()
                if (not request.states or value.state in request.states)
                and (not request.producer_ids or value.producer_id in request.producer_ids)
            )
        )

    # ---------------------------------------------------------------------------------- upkeep

    def _write(
        self,
        transactional_id: str,
        value: TransactionValue | None,
        waiting: tuple[Token, TransactionRequest] | None = None,
        answer: Any = None,
        counts_as: str = "moved",
    ) -> list[Action]:
        known = self.values.get(transactional_id)
        if known is not None and value is not None and known.state is not value.state:
            assert known.state in STATES_BEFORE[value.state], (transactional_id, known, value)
        self.last_write_id += 1
        write_id = WriteId(self.last_write_id)
        self.writes[write_id] = _Pending(transactional_id, value, waiting, answer, counts_as)
        self.held.add(transactional_id)
        self.alarms.set(transactional_id, None)
        record = StateRecord(TransactionKey(transactional_id), value)
        return [Write(write_id, transactional_id, (record,), holds_key=True)]

    def next_deadline_ms(self) -> MonotonicMs | None:
        deadlines = (self.alarms.next_ms(), self.next_check_ms)
        return min((one for one in deadlines if one is not None), default=None)

    def _set_alarm(self, transactional_id: str, now: Now, *, at_least_in_ms: int = 0) -> None:
        """At the time-out of an open transaction. Its beginning is known by the wall clock alone."""
        value = self.values.get(transactional_id)
        if value is None or value.state is not TransactionState.ONGOING:
            self.alarms.set(transactional_id, None)
            return
        left_ms = value.start_ms + value.timeout_ms - now.wall_ms
        # A wall clock that was set back must not keep a transaction open for longer than its time-out.
        self.alarms.set(transactional_id, _later(now, max(at_least_in_ms, min(left_ms, value.timeout_ms), 0)))

    def _check_expiry(self, now: Now) -> list[Action]:
        """A step of the check, if it is time. The next step follows at once, until all are checked."""
        if self.next_check_ms is None or now.monotonic_ms < self.next_check_ms:
            return []
        if not self.unchecked:
            self.unchecked.extend(self.values)
        actions: list[Action] = []
        for _ in range(min(len(self.unchecked), IDS_PER_CHECK)):
            transactional_id = self.unchecked.popleft()
            if self._has_expired(transactional_id, now):
                actions += self._write(transactional_id, None, counts_as="expired")
        if not self.unchecked:
            self.next_check_ms = _later(now, self.settings.expiration_check_interval_ms)
        return actions

    def _has_expired(self, transactional_id: str, now: Now) -> bool:
        value = self.values.get(transactional_id)
        if value is None or value.state not in AT_REST or transactional_id in self.held:
            return False
        return now.wall_ms - value.last_update_ms >= self.settings.id_expiration_ms

    # ----------------------------------------------------------------------- for those who look

    def counts(self) -> Mapping[str, int]:
        return dict(self.counters)

    def open_transactions(self) -> list[TransactionValue]:
        """May be called while the machine works on another thread."""
        return [value for value in list(self.values.values()) if value.state not in AT_REST]

    def check_invariants(self) -> None:
        ids = [pending.transactional_id for pending in self.writes.values()]
        assert sorted(ids) == sorted(self.held), (ids, self.held)
        for transactional_id, value in self.values.items():
            assert value.state not in AT_REST or not value.topics, (transactional_id, value)
            assert 0 <= value.producer_epoch <= 2**15 - 1, (transactional_id, value)
            assert value.producer_id >= 0, (transactional_id, value)
            assert value.state in AT_REST or value.start_ms >= 0, (transactional_id, value)


def _markers(transactional_id: str, value: TransactionValue) -> Tell:
    return Tell(
        SendMarkers(
            transactional_id,
            value.producer_id,
            value.producer_epoch,
            value.state is TransactionState.PREPARE_COMMIT,
            value.topics,
        )
    )


def _later(now: Now, span_ms: int) -> MonotonicMs:
    return MonotonicMs(now.monotonic_ms + span_ms)
