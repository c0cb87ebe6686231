"""Metrics of a broker's connections, and of the requests of each API (docs/metrics.md)."""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Final

from sparklog.core.apis.api_table import APIS
from sparklog.model.errors import ErrorCode
from sparklog.model.metric import Metric, counter, gauge, histogram
from sparklog.network.reactor import Reactor
from sparklog.network.request_statistics import DURATIONS_MS, ApiStatistics, RequestStatistics

_STAGES: Final[tuple[tuple[str, Callable[[ApiStatistics], int], str], ...]] = (
    ("queue", attrgetter("queue_ns"), "Seconds that requests waited for a handler."),
    ("work", attrgetter("work_ns"), "Seconds that handlers worked on requests."),
    (
        "wait",
        attrgetter("wait_ns"),
        "Seconds that requests waited for replicas, records, the controller, or earlier replies of their "
        "connection.",
    ),
    (
        "send",
        attrgetter("send_ns"),
        "Seconds from the first byte of responses until the kernel had all of them.",
    ),
)
_TIMED: Final = ("Produce", "Fetch")
"""Their times have a histogram: every other request is rare, or of another broker."""

_NS_PER_S: Final = 1_000_000_000


def connection_metrics(reactor: Reactor) -> Iterator[Metric]:
    yield gauge("sparklog_broker_connections", "Open connections.", reactor.connections)
    yield counter(
        "sparklog_broker_connections_refused_total",
        "Connections that were closed at once, because they were above a limit.",
        reactor.connections_refused,
    )
    for (listener, stage), count in sorted(reactor.connections_failed.items()):
        yield counter(
            "sparklog_broker_connections_failed_total",
            "Connections whose TLS handshake or login has failed.",
            count,
            listener=listener,
            stage=stage,
        )
    yield gauge(
        "sparklog_broker_connections_held_up",
        "Connections that are not read because queued.max.request.bytes is used up.",
        reactor.connections_held_up,
    )
    yield gauge(
        "sparklog_broker_requests_queued", "Requests that wait for a handler.", reactor.requests_waiting
    )
    yield gauge(
        "sparklog_broker_request_bytes",
        "Bytes of requests that were read and no handler is done with; 0 without queued.max.request.bytes.",
        reactor.frames_bytes,
    )


def request_metrics(statistics: RequestStatistics) -> Iterator[Metric]:
    """All metrics have the label ``api``; an API without a request yet has none."""
    by_api = {APIS[key].name: sums for key, sums in statistics.snapshot().items()}
    for api, sums in by_api.items():
        yield counter("sparklog_broker_requests_total", "Requests of each API.", sums.requests, api=api)
    for api, sums in by_api.items():
        for code, count in sorted(sums.errors.items()):
            yield counter(
                "sparklog_broker_request_errors_total",
                "Error codes in the responses of each API.",
                count,
                api=api,
                error=ErrorCode(code).name.upper(),
            )
    for api, sums in by_api.items():
        if api in _TIMED:
            yield histogram(
                "sparklog_broker_request_seconds",
                "Seconds from the last byte of a produce or a consumer's fetch until its response was sent.",
                [bound_ms / 1_000 for bound_ms in DURATIONS_MS],
                sums.durations,
                sum(sum_ns(sums) for _, sum_ns, _ in _STAGES) / _NS_PER_S,
                api=api,
            )
    for stage, sum_ns, doc in _STAGES:
        for api, sums in by_api.items():
            name = f"sparklog_broker_request_{stage}_seconds_total"
            yield counter(name, doc, sum_ns(sums) / _NS_PER_S, api=api)
