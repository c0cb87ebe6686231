"""What clients use of their quotas at this broker: bytes written, bytes read, CPU time of threads.

A request is metered from its dispatch on, if its user or client may have a quota, and is charged when it is
answered. The answer says how long the client must wait, and leaves at once; then its connection is muted for
that long (``network.exchange``), because a client may ignore what it is answered. Nothing is kept for the
wait but the connection itself.

CPU time counts, not the time that passed: under one interpreter lock the latter is the work of others. What a
thread does for a request after its answer is charged without a wait, as in Kafka the time of network threads.

While no quota is set, a request costs one look at ``is_active``.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sparklog.core.apis.api import Quota
from sparklog.core.client_quotas.connection_rates import UNLIMITED_RATE
from sparklog.core.client_quotas.quota_book import QuotaBook
from sparklog.core.client_quotas.quota_keys import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from sparklog.core.client_quotas.sampled_rate import Windows
from sparklog.core.client_quotas.usage import RateUsage, UsedRate
from sparklog.model.ports import Guard
from sparklog.model.time import Clock
from sparklog.network.thread_state import ThreadTime, thread_time

_PERCENT_PER_NS: Final = 100 / 1_000_000_000
"""A thread that computes for a second has used 100 per cent."""

ENTITIES_SHOWN_MAX: Final = 1_000
"""Entities of which metrics tell, the last active ones."""


class ClientQuotas:
    """The quotas that are set, and what was used of them. Any thread may call."""

    def __init__(
        self,
        windows: Windows,
        clock: Clock,
        guard: Guard,
        thread_time: Callable[[], ThreadTime] = thread_time,
    ) -> None:
        self.is_active = False
        """Whether requests are to be metered. Read without the guard, because a late change is harmless."""
        self.is_timed = False
        """Whether their time is."""
        self.book: Final = QuotaBook()
        self.windows: Final = windows
        self.thread_time: Final = thread_time
        self._clock = clock
        self.guard: Final = guard
        tables = self.book.of_clients
        self._usages: Final = {
            PRODUCER_BYTE_RATE: RateUsage(tables[PRODUCER_BYTE_RATE], windows),
            CONSUMER_BYTE_RATE: RateUsage(tables[CONSUMER_BYTE_RATE], windows),
            REQUEST_PERCENTAGE: RateUsage(
                tables[REQUEST_PERCENTAGE], windows, delay_max_ms=windows.sample_ms
            ),
        }

    # What the reader of ZooKeeper calls

    def replace(self, nodes: Mapping[str, Mapping[str, str]]) -> None:
        with self.guard:
            self.book.replace(nodes)
            self._note_kinds()

    def put(self, path: str, configs: Mapping[str, str]) -> None:
        with self.guard:
            self.book.put(path, configs)
            self._note_kinds()

    def _note_kinds(self) -> None:
        self.is_timed = bool(self.book.of_clients[REQUEST_PERCENTAGE])
        self.is_active = any(usage.table for usage in self._usages.values())

    def address_rate(self, address: str) -> float:
        """How many connections a second ``address`` may open."""
        rates = self.book.of_addresses
        if not rates:
            return UNLIMITED_RATE
        with self.guard:
            return rates.get(address, rates.get(None, UNLIMITED_RATE))

    # What meters call

    def charge(self, key: str, user: str, client_id: str, amount: float) -> int:
        """Count ``amount`` as used; returns how long the client must wait, in milliseconds."""
        with self.guard:
            return self._usages[key].record(user, client_id, amount, self._clock.monotonic_ms())

    def charge_time(self, user: str, client_id: str, spent_ns: int) -> int:
        return self.charge(REQUEST_PERCENTAGE, user, client_id, spent_ns * _PERCENT_PER_NS)

    def read_bytes_max(self, user: str, client_id: str) -> int | None:
        """The largest answer to a fetch; None: any."""
        with self.guard:
            return self._usages[CONSUMER_BYTE_RATE].most_at_once(user, client_id)

    def used(self) -> Mapping[str, list[UsedRate]]:
        """For metrics: by the quota's key."""
        left, now_ms = ENTITIES_SHOWN_MAX, self._clock.monotonic_ms()
        shown = {}
        with self.guard:
            for key, usage in self._usages.items():
                shown[key] = usage.used(left, now_ms)
                left -= len(shown[key])
        return shown


@dataclass(slots=True)
class RequestMeter:
    """What one request uses."""

    quotas: ClientQuotas
    user: str
    client_id: str
    quota: Quota
    frame_bytes: int
    _began: ThreadTime | None = None
    """Since when a thread works on it; None: none does."""
    _spent_ns: int = 0
    """CPU time that is not charged yet."""
    _delay_ms: int | None = None
    """How long the client must wait, once the request is charged."""

    @contextmanager
    def working(self) -> Iterator[None]:
        """The calling thread works on the request meanwhile."""
        if not self.quotas.is_timed:
            yield
            return
        with self.quotas.guard:
            self._began = self.quotas.thread_time()
        try:
            yield
        finally:
            with self.quotas.guard:
                self._note_spent()
                self._began = None
                late_ns = 0 if self._delay_ms is None else self._take_spent()
            if late_ns:
                self.quotas.charge_time(self.user, self.client_id, late_ns)

    def _note_spent(self) -> None:
        """If the calling thread works on the request, note what it has spent."""
        if self._began is None:
            return
        now = self.quotas.thread_time()
        if now.thread == self._began.thread:
            self._spent_ns += now.cpu_ns - self._began.cpu_ns
            self._began = now

    def _take_spent(self) -> int:
        spent_ns, self._spent_ns = self._spent_ns, 0
        return spent_ns

    def delay_ms(self, *, is_timed: bool = True) -> int:
        """The request is answered now: how long its client must wait. ``is_timed``: its time counts."""
        with self.quotas.guard:
            if self._delay_ms is not None:
                return self._delay_ms
            self._delay_ms = 0
            self._note_spent()
            spent_ns = self._take_spent()
        delays_ms = [0]
        if self.quota is Quota.produce:
            delays_ms.append(
                self.quotas.charge(PRODUCER_BYTE_RATE, self.user, self.client_id, self.frame_bytes)
            )
        if spent_ns and is_timed:
            delays_ms.append(self.quotas.charge_time(self.user, self.client_id, spent_ns))
        self._delay_ms = max(delays_ms)
        return self._delay_ms

    def delay_of_read_ms(self, size_bytes: int) -> int:
        """The same for an answer with ``size_bytes`` of records; if the client must wait, they do not count,
        because it is answered without them.
        """
        delay_ms = self.quotas.charge(CONSUMER_BYTE_RATE, self.user, self.client_id, size_bytes)
        self._delay_ms = delay_ms = max(delay_ms, self.delay_ms())
        if delay_ms:
            self.quotas.charge(CONSUMER_BYTE_RATE, self.user, self.client_id, -size_bytes)
        return delay_ms

    def read_bytes_max(self) -> int | None:
        return self.quotas.read_bytes_max(self.user, self.client_id)
