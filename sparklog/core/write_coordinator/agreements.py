"""Values that tasks agree upon: the first value of a name counts for all of them.

    Agree(name)         --> None: the name has no value
    Agree(name, value)  --> Write ... Written --> value, or the first one
    a day without a question --> forgotten

Tasks of one Spark job know of each other only through the cluster. An agreement lets them and their retries
act upon the same facts. A value that was answered is kept by every later coordinator.

An agreement is kept for a day after its last use. Uses are not written, so a new coordinator counts each
agreement as used just now. The values of one partition of ``__transaction_state`` are bounded, in number and
in bytes, and so are those of one principal. Without room, the agreement that was used longest ago is dropped,
if that is ten minutes ago. Otherwise the answer is THROTTLING_QUOTA_EXCEEDED, which clients repeat.

Each principal has values of its own under a name: names can be guessed, and the first value counts.
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
from sparklog.core.security.requester import ANONYMOUS
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
SHARE: Final = 4
"""A principal that has logged in may take up one part in so many of the room."""

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

    key: AgreementKey
    agreement: Agreement | None
    waiting: Token | None = None
    """The request that put the agreement, until it is answered."""


@dataclass(slots=True)
class Agreements:
    """The agreements of one partition, in one leader epoch of its coordinator."""

    kept: OrderedDict[AgreementKey, _Kept] = field(default_factory=OrderedDict)
    """Committed agreements, the one used longest ago first."""
    pending: dict[WriteId, _Pending] = field(default_factory=dict)
    """Records in progress. No key of an agreement here is in ``kept``."""
    replayed: dict[AgreementKey, Agreement] = field(default_factory=dict)
    """The records read while loading; empty from then on."""
    total_bytes: int = 0
    """Bytes of the agreements in ``kept`` and ``pending``."""
    bytes_of: Counter[str] = field(default_factory=Counter)
    count_of: Counter[str] = field(default_factory=Counter)
    """The same, and the number of these agreements, by principal."""
    counters: Counter[str] = field(default_factory=Counter)
    events: RecentEvents = field(default_factory=RecentEvents)
    last_write_id: int = FIRST_AGREEMENT_WRITE_ID

    # --------------------------------------------------------------------------------- loading

    def replay(self, record: StateRecord) -> None:
        if record.value is None:
            self.replayed.pop(record.key, None)
        else:
            self.replayed[record.key] = record.value

    def on_loaded(self, now: Now) -> list[Action]:
        oldest_first = sorted(self.replayed.items(), key=lambda item: item[1].agreed_ms)
        self.kept = OrderedDict((key, _Kept(agreement, now.monotonic_ms)) for key, agreement in oldest_first)
        for key, agreement in oldest_first:
            self._account(key, agreement)
        self.replayed = {}
        return []

    # ----------------------------------------------------------------------------------- facts

    def on_request(self, token: Token, request: Agree, now: Now) -> list[Action]:
        key = AgreementKey(request.name, request.principal)
        known = self.kept.get(key)
        if known is not None:
            self._use(key, known, now)
            return [Reply(token, Agreed(value=known.agreement.value))]
        if request.value is None:
            return [Reply(token, Agreed())]
        agreement = Agreement(request.value, now.wall_ms)
        room = self._room_for(key, agreement, now)
        if room is None:
            self.counters["refused"] += 1
            return [Reply(token, request.refused(ErrorCode.throttling_quota_exceeded))]
        self._account(key, agreement)
        record = StateRecord(key, agreement)
        pending = _Pending(key, agreement, token)
        return [*room, self._append((record,), pending, holds_key=True)]

    def on_written(self, write_id: WriteId, outcome: WriteOutcome, now: Now) -> list[Action]:
        pending = self.pending.get(write_id)
        if pending is None:
            raise self.events.illegal(f"{outcome} of write {write_id}, which is not under way")
        token, pending.waiting = pending.waiting, None
        answer = Agreed(write_error(outcome))
        if not isinstance(outcome, InDoubt):
            del self.pending[write_id]
        if pending.agreement is not None and isinstance(outcome, Written):
            self.kept[pending.key] = _Kept(pending.agreement, now.monotonic_ms)
            self.counters["agreed"] += 1
            answer = Agreed(value=pending.agreement.value)
        elif pending.agreement is not None and not isinstance(outcome, InDoubt):
            self._account(pending.key, pending.agreement, -1)
        return [] if token is None else [Reply(token, answer)]

    def on_time(self, now: Now) -> list[Action]:
        """Forget agreements that were not used for a day, some at a time.

        A tombstone that the log refuses is not repeated: the next coordinator keeps the agreement for a day.
        """
        keys: list[AgreementKey] = []
        for key, known in self.kept.items():
            if known.used_ms + RETENTION_MS > now.monotonic_ms or len(keys) == FORGOTTEN_MAX:
                break
            keys.append(key)
        return self._forget(keys) if keys else []

    def next_deadline_ms(self) -> MonotonicMs | None:
        first = next(iter(self.kept.values()), None)
        return None if first is None else MonotonicMs(first.used_ms + RETENTION_MS)

    def on_resigned(self) -> list[Reply]:
        waiting = [pending.waiting for pending in self.pending.values() if pending.waiting is not None]
        self.kept.clear()
        self.pending.clear()
        self.total_bytes = 0
        self.bytes_of.clear()
        self.count_of.clear()
        return [Reply(token, Agreed(ErrorCode.not_coordinator)) for token in waiting]

    # ----------------------------------------------------------------------------------- steps

    def _use(self, key: AgreementKey, known: _Kept, now: Now) -> None:
        known.used_ms = now.monotonic_ms
        self.kept.move_to_end(key)

    def _account(self, key: AgreementKey, agreement: Agreement, sign: int = 1) -> None:
        size = _bytes_of(key, agreement)
        self.total_bytes += sign * size
        self.bytes_of[key.principal] += sign * size
        self.count_of[key.principal] += sign
        if not self.count_of[key.principal]:
            del self.bytes_of[key.principal], self.count_of[key.principal]

    def _room_for(self, key: AgreementKey, agreement: Agreement, now: Now) -> list[Action] | None:
        """The actions that make room for another agreement; None if all are in use."""
        size, principal = _bytes_of(key, agreement), key.principal
        own_max = 1 if principal == ANONYMOUS else SHARE
        keys: list[AgreementKey] = []
        count, total = len(self.kept) + len(self.pending), self.total_bytes
        own_count, own_total = self.count_of[principal], self.bytes_of[principal]

        def is_full() -> bool:
            return count >= AGREEMENTS_MAX or total + size > TOTAL_BYTES_MAX

        def is_own_full() -> bool:
            return own_count >= AGREEMENTS_MAX // own_max or own_total + size > TOTAL_BYTES_MAX // own_max

        for other, known in self.kept.items():
            if not (is_full() or is_own_full()) or known.used_ms + IN_USE_MS > now.monotonic_ms:
                break
            if is_own_full() and other.principal != principal:
                continue
            keys.append(other)
            freed = _bytes_of(other, known.agreement)
            count, total = count - 1, total - freed
            if other.principal == principal:
                own_count, own_total = own_count - 1, own_total - freed
        if is_full() or is_own_full():
            return None
        return self._forget(keys) if keys else []

    def _forget(self, keys: list[AgreementKey]) -> list[Action]:
        for key in keys:
            self._account(key, self.kept.pop(key).agreement, -1)
        self.counters["forgotten"] += len(keys)
        records = tuple(StateRecord(key, None) for key in keys)
        return [self._append(records, _Pending(keys[0], None), holds_key=False)]

    def _append(self, records: tuple[StateRecord, ...], pending: _Pending, *, holds_key: bool) -> Write:
        """Requests for the name of any principal wait for a record that holds it."""
        self.last_write_id += 1
        write_id = WriteId(self.last_write_id)
        self.pending[write_id] = pending
        return Write(write_id, pending.key.name, records, holds_key=holds_key)

    # ----------------------------------------------------------------------- for those who look

    def counts(self) -> Mapping[str, int]:
        return dict(self.counters)

    def check_invariants(self) -> None:
        under_way = [pending for pending in self.pending.values() if pending.agreement is not None]
        keys = [pending.key for pending in under_way]
        assert len(set(keys)) == len(keys), keys
        assert self.kept.keys().isdisjoint(keys), keys
        held = [(key, known.agreement) for key, known in self.kept.items()]
        held += [(one.key, one.agreement) for one in under_way if one.agreement is not None]
        assert self.total_bytes == sum(_bytes_of(*one) for one in held), self.total_bytes
        assert self.count_of == Counter(key.principal for key, _ in held), self.count_of
        assert self.bytes_of.total() == self.total_bytes, self.bytes_of
        used = [known.used_ms for known in self.kept.values()]
        assert used == sorted(used), used


def _bytes_of(key: AgreementKey, agreement: Agreement) -> int:
    own = 0 if key.principal == ANONYMOUS else len(key.principal)
    return len(key.name) + own + len(agreement.value) + ENTRY_BYTES
