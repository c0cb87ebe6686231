"""Where the time of requests goes, summed up for each API.

    arrived ------> began ------> handled ------> leaving ------> sent
             queue          work            wait           send

*queue*: read whole, and no handler was free. *work*: on a handler's thread. *wait*: for followers, records or
the controller, and for earlier replies of the connection. *send*: from the first byte of the response until
the kernel had all of it. A request that its handler answers has no *wait*, unless an earlier reply is still
to leave. A connection that ends earlier ends the request's present stage.

Sums and a count make a mean, and counts of durations make quantiles. A scrape reads them, so that requests
pay six clock readings and one lock.
"""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter_ns
from typing import Final

from sparklog.network.exchange import Exchange

DURATIONS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000)
"""The bounds of the twelve buckets of durations, each inclusive."""

_BOUNDS_NS: Final = tuple(bound_ms * 1_000_000 for bound_ms in DURATIONS_MS)


@dataclass(slots=True)
class ApiStatistics:
    """Sums over the requests of one API. ``errors``: how often responses had each error code."""

    requests: int = 0
    queue_ns: int = 0
    work_ns: int = 0
    wait_ns: int = 0
    send_ns: int = 0
    durations: list[int] = field(default_factory=lambda: [0] * (len(DURATIONS_MS) + 1))
    """How many requests took longer than the bound before, from *arrived* to *sent*, and not longer than
    their own; the last of them longer than all bounds."""
    errors: Counter[int] = field(default_factory=Counter)


class RequestStatistics:
    """The statistics of one server; ``record`` may be called by any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._by_api: dict[int, ApiStatistics] = {}

    def record(self, exchange: Exchange) -> None:
        """Count a request whose answer is sent, or whose connection has ended. Without ``api_key`` it was
        none, and is not counted.
        """
        api_key = exchange.api_key
        if api_key is None:
            return
        sent_ns = perf_counter_ns()
        answered_ns = exchange.answered_ns or sent_ns
        leaving_ns = max(exchange.leaving_ns, answered_ns)
        began_ns = exchange.began_ns or answered_ns
        handled_ns = min(exchange.handled_ns or answered_ns, answered_ns)
        with self._guard:
            sums = self._by_api.get(api_key)
            if sums is None:
                sums = self._by_api[api_key] = ApiStatistics()
            sums.requests += 1
            sums.queue_ns += began_ns - exchange.arrived_ns
            sums.work_ns += handled_ns - began_ns
            sums.wait_ns += leaving_ns - handled_ns
            sums.send_ns += sent_ns - leaving_ns
            sums.durations[bisect_left(_BOUNDS_NS, sent_ns - exchange.arrived_ns)] += 1
            if exchange.errors:
                sums.errors.update(exchange.errors)

    def snapshot(self) -> Mapping[int, ApiStatistics]:
        """The sums of now, by API key."""
        with self._guard:
            return {
                key: replace(sums, errors=Counter(sums.errors), durations=list(sums.durations))
                for key, sums in sorted(self._by_api.items())
            }
