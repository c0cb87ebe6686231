"""Metrics over HTTP, in Prometheus's text format: the only module that knows its library.

Figures are read when somebody asks for them, so that the work they are about pays nothing. Each server has a
registry of its own, as several may live in one process. A server with ``metrics.port`` = -1 does not import
this module: the library takes 9 MiB and a tenth of a second.

Each connection has a thread of its own, which sees its TLS handshake through, too: a client that stalls holds
nobody up, and renewed certificates count from the next connection on. Connections have bounds in number and
time.
"""

import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from math import inf
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, generate_latest, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from sparklog.model.cluster_facts import host_port
from sparklog.model.metric import Metric
from sparklog.model.time import MonotonicMs
from sparklog.network.accepting.refused_connections import RefusedConnections
from sparklog.network.clock import SystemClock
from sparklog.network.tls.sides import TlsServer

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


def text_of(metrics: Iterable[Metric]) -> bytes:
    """These metrics as a scrape gets them; those of one name follow each other."""
    registry = CollectorRegistry()
    registry.register(_Figures(lambda: metrics))
    return generate_latest(registry)


CONNECTIONS_MAX: Final = 32
"""Connections at a time; a further one is closed."""

PATIENCE_S: Final = 10.0
"""How long a client may be silent, in its handshake or its request."""


class _Handler(WSGIRequestHandler):
    timeout = PATIENCE_S

    def log_message(self, *_: object) -> None:
        """Nobody wants a line for each scrape."""


class _Server(ThreadingMixIn, WSGIServer):
    """Over a socket that listens; TLS is spoken by the threads of its connections."""

    daemon_threads = True
    tls: TlsServer | None = None

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)
        self._guard = threading.Lock()
        self._refused = RefusedConnections()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Without the look-up of this host's name, which may take seconds."""
        TCPServer.server_bind(self)
        host, port = self.socket.getsockname()[:2]
        self.server_name, self.server_port = str(host), int(port)
        self.setup_environ()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return self._free.acquire(blocking=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be had
            self._free.release()
            raise

    def service_actions(self) -> None:
        with self._guard:
            self._refused.report_due(_now_ms())

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            secured = self._secured(request, client_address)
            if secured is None:
                self.shutdown_request(request)
            else:
                super().process_request_thread(secured, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        logger.debug("a scrape from %s was not answered", client_address[0], exc_info=True)

    def _secured(self, request: socket.socket, client_address: Any) -> socket.socket | None:
        if self.tls is None:
            return request
        request.settimeout(PATIENCE_S)
        try:
            return self.tls.context().wrap_socket(request, server_side=True)
        except OSError as error:
            with self._guard:
                self._refused.note(client_address[0], f"it wants metrics over TLS: {error}", _now_ms())
            return None


def _now_ms() -> MonotonicMs:
    return SystemClock().monotonic_ms()


class MetricsServer:
    """Serves at ``http://host:port/metrics`` until it is closed, or at ``https`` with ``tls``; port 0 takes a
    free one. OSError if it is in use. A thread listens.
    """

    def __init__(
        self, read: ReadMetrics, host: str, port: int, *, name: str, tls: TlsServer | None = None
    ) -> None:
        registry = CollectorRegistry()
        registry.register(_Figures(read))
        self._server = make_server(host, port, make_wsgi_app(registry), _Server, _Handler)
        self._server.tls = tls
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, name=f"{name}-metrics", daemon=True)
        self._thread.start()
        self.port: int = self._server.server_port
        self.url = f"{'http' if tls is None else 'https'}://{host_port(host, self.port)}/metrics"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serve_metrics(
    read: ReadMetrics, host: str, port: int, *, name: str, tls: TlsServer | None = None
) -> MetricsServer | None:
    """The server, or None if the port cannot be had: what ``name`` is for is worth more than figures."""
    try:
        server = MetricsServer(read, host, port, name=name, tls=tls)
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
    logger.info("metrics of %s are at %s", name, server.url)
    return server
