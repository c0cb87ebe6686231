"""Metrics over HTTP, in Prometheus's text format: the only module that knows its library.

Figures are read when somebody asks for them, so that the work they are about pays nothing. Each server has a
registry of its own, as several may live in one process. A server with ``metrics.port`` = -1 does not import
this module: the library takes 9 MiB and a tenth of a second.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from math import inf
from typing import Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from sparklog.model.cluster_facts import host_port
from sparklog.model.metric import Metric

logger: Final = logging.getLogger(__name__)

ReadMetrics = Callable[[], Iterable[Metric]]
"""What there is to tell now; called on a thread of the HTTP server, so it must not wait for anything."""


class _Figures(Collector):
    def __init__(self, read: ReadMetrics) -> None:
        self._read = read

    def collect(self) -> Iterator[Family]:
        for name, metrics in groupby(self._read(), key=lambda metric: metric.name):
            yield _family(name, list(metrics))


def _family(name: str, metrics: list[Metric]) -> Family:
    first = metrics[0]
    if first.kind == "histogram":
        return _histogram(first, metrics)
    kind = CounterMetricFamily if first.kind == "counter" else GaugeMetricFamily
    family = kind(name, first.doc, labels=[label for label, _ in first.labels])
    for metric in metrics:
        family.add_metric([value for _, value in metric.labels], metric.value)
    return family


def _histogram(first: Metric, metrics: list[Metric]) -> Family:
    family = HistogramMetricFamily(first.name, first.doc, labels=[label for label, _ in first.labels])
    for metric in metrics:
        buckets = [("+Inf" if bound == inf else str(bound), count) for bound, count in metric.buckets]
        family.add_metric([value for _, value in metric.labels], buckets, metric.value)
    return family


class MetricsServer:
    """Serves at ``http://host:port/metrics`` until it is closed; port 0 takes a free one. OSError if it is in
    use. A thread listens, and each request has a short one of its own.
    """

    def __init__(self, read: ReadMetrics, host: str, port: int, *, name: str) -> None:
        registry = CollectorRegistry()
        registry.register(_Figures(read))
        self._server, self._thread = start_http_server(port, host, registry)
        self._thread.name = f"{name}-metrics"
        self.port = self._server.server_port

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serve_metrics(read: ReadMetrics, host: str, port: int, *, name: str) -> MetricsServer | None:
    """The server, or None if the port cannot be had: what ``name`` is for is worth more than figures."""
    try:
        server = MetricsServer(read, host, port, name=name)
    except OSError as error:
        logger.error(
            "%s goes on without metrics: metrics.port=%d cannot be opened at %s: %s; give another port, or "
            "metrics.port=0 where several servers share a host, and start again",
            name,
            port,
            host,
            error.strerror or error,
        )
        return None
    logger.info("metrics of %s are at http://%s/metrics", name, host_port(host, server.port))
    return server
