"""Values that tasks agree upon: the first value of a name counts for all of them.

    Agree(name)         --> None: the name has no value
    Agree(name, value)  --> Write ... Written --> value, or the first one
    a day without a question --> forgotten

Tasks of one Spark job know of each other only through the cluster. An agreement lets them and their retries
act upon the same facts. A value that was answered is kept by every later coordinator.

An agreement is kept for a day after its last use. Uses are not written, so a new coordinator counts each
agreement as used just now. The values of one partition of ``__transaction_state`` are bounded, in number and
in bytes. Without room, the agreement that was used longest ago is dropped, if that is ten minutes ago.
Otherwise the answer is THROTTLING_QUOTA_EXCEEDED, which clients repeat.
"""

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

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
from sparklog.core.coordinator.state_machine import Now
from sparklog.core.recent_events import RecentEvents
from sparklog.core.transaction_coordinator.write_errors import write_error
from sparklog.core.write_coordinator.records import Agreement, AgreementKey
from sparklog.core.write_coordinator.requests import Agree
from sparklog.core.write_coordinator.responses import Agreed
from sparklog.model.errors import ErrorCode
from sparklog.model.time import MonotonicMs

FIRST_AGREEMENT_WRITE_ID: Final = 1 << 41
"""Beyond those of the machines beside this one."""

RETENTION_MS: Final = 86_400_000
IN_USE_MS: Final = 600_000
"""An agreement that was used since then makes no room for others."""

AGREEMENTS_MAX: Final = 100_000
TOTAL_BYTES_MAX: Final = 32 << 20
ENTRY_BYTES: Final = 200
"""Memory of an agreement beside its name and value, roughly."""

FORGOTTEN_MAX: Final = 200
"""Most agreements that one record batch forgets."""


@dataclass(slots=True)
class _Kept:
    agreement: Agreement
    used_ms: MonotonicMs


@dataclass(slots=True)
class _Pending:
    """A record in progress. ``agreement`` is None for tombstones."""

    name: str
    agreement: Agreement | None
    waiting: Token | None = None
    """The request that put the agreement, until it is answered."""


@dataclass(slots=True)
class Agreements:
    """The agreements of one partition, in one leader epoch of its coordinator."""

    kept: OrderedDict[str, _Kept] = field(default_factory=OrderedDict)
    """Committed agreements by name, the one used longest ago first."""
    pending: dict[WriteId, _Pending] = field(default_factory=dict)
    """Records in progress. No name of an agreement here is in ``kept``."""
    replayed: dict[str, Agreement] = field(default_factory=dict)
    """The records read while loading; empty from then on."""
    total_bytes: int = 0
    """Bytes of the agreements in ``kept`` and ``pending``."""
    counters: Counter[str] = field(default_factory=Counter)
    events: RecentEvents = field(default_factory=RecentEvents)
    last_write_id: int = FIRST_AGREEMENT_WRITE_ID

    # --------------------------------------------------------------------------------- loading

    def replay(self, record: StateRecord) -> None:
        if record.value is None:
            self.replayed.pop(record.key.name, None)
        else:
            self.replayed[record.key.name] = record.value

    def on_loaded(self, now: Now) -> list[Action]:
        oldest_first = sorted(self.replayed.items(), key=lambda item: item[1].agreed_ms)
        self.kept = OrderedDict(
            (name, _Kept(agreement, now.monotonic_ms)) for name, agreement in oldest_first
        )
        self.total_bytes = sum(_bytes_of(name, agreement) for name, agreement in oldest_first)
        self.replayed = {}
        return []

    # ----------------------------------------------------------------------------------- facts

    def on_request(self, token: Token, request: Agree, now: Now) -> list[Action]:
        known = self.kept.get(request.name)
        if known is not None:
            self._use(request.name, known, now)
            return [Reply(token, Agreed(value=known.agreement.value))]
        if request.value is None:
            return [Reply(token, Agreed())]
        agreement = Agreement(request.value, now.wall_ms)
        room = self._room_for(_bytes_of(request.name, agreement), now)
        if room is None:
            self.counters["refused"] += 1
            return [Reply(token, request.refused(ErrorCode.throttling_quota_exceeded))]
        self.total_bytes += _bytes_of(request.name, agreement)
        record = StateRecord(AgreementKey(request.name), agreement)
        pending = _Pending(request.name, agreement, token)
        return [*room, self._append(request.name, (record,), pending, holds_key=True)]

    def on_written(self, write_id: WriteId, outcome: WriteOutcome, now: Now) -> list[Action]:
        pending = self.pending.get(write_id)
        if pending is None:
            raise self.events.illegal(f"{outcome} of write {write_id}, which is not under way")
        token, pending.waiting = pending.waiting, None
        answer = Agreed(write_error(outcome))
        if not isinstance(outcome, InDoubt):
            del self.pending[write_id]
        if pending.agreement is not None and isinstance(outcome, Written):
            self.kept[pending.name] = _Kept(pending.agreement, now.monotonic_ms)
            self.counters["agreed"] += 1
            answer = Agreed(value=pending.agreement.value)
        elif pending.agreement is not None and not isinstance(outcome, InDoubt):
            self.total_bytes -= _bytes_of(pending.name, pending.agreement)
        return [] if token is None else [Reply(token, answer)]

    def on_time(self, now: Now) -> list[Action]:
        """Forget agreements that were not used for a day, some at a time.

        A tombstone that the log refuses is not repeated: the next coordinator keeps the agreement for a day.
        """
        names: list[str] = []
        for name, known in self.kept.items():
            if known.used_ms + RETENTION_MS > now.monotonic_ms or len(names) == FORGOTTEN_MAX:
                break
            names.append(name)
        return self._forget(names) if names else []

    def next_deadline_ms(self) -> MonotonicMs | None:
        first = next(iter(self.kept.values()), None)
        return None if first is None else MonotonicMs(first.used_ms + RETENTION_MS)

    def on_resigned(self) -> list[Reply]:
        waiting = [pending.waiting for pending in self.pending.values() if pending.waiting is not None]
        self.kept.clear()
        self.pending.clear()
        self.total_bytes = 0
        return [Reply(token, Agreed(ErrorCode.not_coordinator)) for token in waiting]

    # ----------------------------------------------------------------------------------- steps

    def _use(self, name: str, known: _Kept, now: Now) -> None:
        known.used_ms = now.monotonic_ms
        self.kept.move_to_end(name)

    def _room_for(self, size: int, now: Now) -> list[Action] | None:
        """The actions that make room for another agreement; None if all are in use."""
        names: list[str] = []
        count, total = len(self.kept) + len(self.pending), self.total_bytes
        for name, known in self.kept.items():
            if count < AGREEMENTS_MAX and total + size <= TOTAL_BYTES_MAX:
                break
            if known.used_ms + IN_USE_MS > now.monotonic_ms:
                return None
            names.append(name)
            count, total = count - 1, total - _bytes_of(name, known.agreement)
        if count >= AGREEMENTS_MAX or total + size > TOTAL_BYTES_MAX:
            return None
        return self._forget(names) if names else []

    def _forget(self, names: list[str]) -> list[Action]:
        for name in names:
            self.total_bytes -= _bytes_of(name, self.kept.pop(name).agreement)
        self.counters["forgotten"] += len(names)
        records = tuple(StateRecord(AgreementKey(name), None) for name in names)
        return [self._append(names[0], records, _Pending(names[0], None), holds_key=False)]

    def _append(
        self, key: str, records: tuple[StateRecord, ...], pending: _Pending, *, holds_key: bool
    ) -> Write:
        self.last_write_id += 1
        write_id = WriteId(self.last_write_id)
        self.pending[write_id] = pending
        return Write(write_id, key, records, holds_key=holds_key)

    # ----------------------------------------------------------------------- for those who look

    def counts(self) -> Mapping[str, int]:
        return dict(self.counters)

    def check_invariants(self) -> None:
        under_way = [pending for pending in self.pending.values() if pending.agreement is not None]
        names = [pending.name for pending in under_way]
        assert len(set(names)) == len(names), names
        assert self.kept.keys().isdisjoint(names), names
        total = sum(_bytes_of(name, known.agreement) for name, known in self.kept.items())
        total += sum(
            _bytes_of(pending.name, pending.agreement)
            for pending in under_way
            if pending.agreement is not None
        )
        assert total == self.total_bytes, (total, self.total_bytes)
        used = [known.used_ms for known in self.kept.values()]
        assert used == sorted(used), used


def _bytes_of(name: str, agreement: Agreement) -> int:
    return len(name) + len(agreement.value) + ENTRY_BYTES
