"""Metrics over HTTP: what a scrape gets, and what is left after the end."""

import logging
import socket
import threading
import urllib.request

import pytest

from sparklog.model.metric import counter, gauge, histogram
from sparklog.network.metrics_server import serve_metrics

HOST = "127.0.0.1"


def scrape(port: int) -> list[str]:
    with urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=20) as answer:
        return answer.read().decode().splitlines()


def test_each_scrape_reads_anew_and_each_server_tells_its_own() -> None:
    seen = iter([1, 2])
    first = serve_metrics(lambda: [gauge("size", "How much.", next(seen))], HOST, 0, name="first")
    second = serve_metrics(lambda: [counter("falls_total", "How often.", 7)], HOST, 0, name="second")
    assert scrape(first.port) == ["# HELP size How much.", "# TYPE size gauge", "size 1.0"]
    assert scrape(first.port)[-1] == "size 2.0"
    assert scrape(second.port)[1:] == ["# TYPE falls_total counter", "falls_total 7.0"]
    first.close()
    second.close()


def test_a_histogram_has_its_counts_added_up_to_each_bound() -> None:
    times = histogram("times_seconds", "How long.", (0.1, 2.0), (3, 0, 1), 7.5, api="Produce")
    server = serve_metrics(lambda: [times], HOST, 0, name="server")
    assert scrape(server.port) == [
        "# HELP times_seconds How long.",
        "# TYPE times_seconds histogram",
        'times_seconds_bucket{api="Produce",le="0.1"} 3.0',
        'times_seconds_bucket{api="Produce",le="2.0"} 3.0',
        'times_seconds_bucket{api="Produce",le="+Inf"} 4.0',
        'times_seconds_count{api="Produce"} 4.0',
        'times_seconds_sum{api="Produce"} 7.5',
    ]
    server.close()


def test_the_end_leaves_neither_thread_nor_socket() -> None:
    before = set(threading.enumerate())
    server = serve_metrics(list, HOST, 0, name="server")
    (listening,) = set(threading.enumerate()) - before
    assert (listening.name, listening.daemon) == ("server-metrics", True)
    scrape(server.port)
    server.close()
    assert not listening.is_alive()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, server.port), 5)
    again = serve_metrics(list, HOST, server.port, name="again")
    assert again.port == server.port
    again.close()


def test_a_port_in_use_is_an_error_in_the_log_with_the_remedy(caplog) -> None:
    with socket.create_server((HOST, 0)) as taken, caplog.at_level(logging.ERROR):
        port = taken.getsockname()[1]
        assert serve_metrics(list, HOST, port, name="broker-1") is None
    assert caplog.messages == [
        f"broker-1 goes on without metrics: metrics.port={port} cannot be opened at 127.0.0.1: Address "
        "already in use; give another port, or metrics.port=0 where several servers share a host, and "
        "start again"
    ]
