"""Metrics over HTTP: what a scrape gets, and what is left after the end."""

import logging
import socket
import ssl
import threading
import urllib.request
from contextlib import ExitStack

import pytest

from sparklog.model.metric import counter, gauge, histogram
from sparklog.network.metrics_server import CONNECTIONS_MAX, serve_metrics
from sparklog.network.tls.from_settings import server_side
from tests.network.tls.certificates import AUTHORITY, issued, of_listener, pem_of, replace, written
from tests.waiting import until

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


@pytest.fixture
def authority(tmp_path):
    file = tmp_path / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(str(file))
    return file


@pytest.fixture
def key_store(tmp_path):
    return written(tmp_path, "broker.pem", pem_of(issued()))


@pytest.fixture
def secured(authority, key_store):
    """A server of metrics whose clients need a certificate only if the test says so."""
    with ExitStack() as running:

        def serve(**more):
            tls = server_side(of_listener(key_store, truststore_location=str(authority), **more))
            server = serve_metrics(lambda: [gauge("size", "How much.", 1)], HOST, 0, name="server", tls=tls)
            running.callback(server.close)
            return server

        yield serve


def scrape_over_tls(server, authority, certificate=None):
    context = ssl.create_default_context(cafile=authority)
    if certificate is not None:
        context.load_cert_chain(certificate)
    with urllib.request.urlopen(server.url, context=context, timeout=20) as answer:
        return answer.read().decode().splitlines()[-1]


def test_metrics_over_tls_are_for_those_who_show_a_certificate(secured, authority, key_store, caplog):
    server = secured(client_auth="required")
    assert server.url == f"https://{HOST}:{server.port}/metrics"
    assert scrape_over_tls(server, authority, key_store) == "size 1.0"
    with pytest.raises(OSError, match=r"certificate required|EOF|reset"):
        scrape_over_tls(server, authority)
    with pytest.raises(OSError, match=r"closed|reset|Remote end"):
        scrape(server.port)
    until(lambda: "peer did not return a certificate" in caplog.text)
    assert f"connection from {HOST} refused: it wants metrics over TLS: " in caplog.text


def test_a_client_that_stalls_in_its_handshake_holds_nobody_up_and_new_certificates_count(
    secured, authority, key_store
):
    server = secured()
    with socket.create_connection((HOST, server.port)):
        assert scrape_over_tls(server, authority) == "size 1.0"
        before = ssl.get_server_certificate((HOST, server.port))
        replace(key_store, pem_of(issued()))
        until(lambda: ssl.get_server_certificate((HOST, server.port)) != before)


def test_further_connections_than_a_server_may_have_are_closed_and_it_serves_on():
    server = serve_metrics(lambda: [gauge("size", "How much.", 1)], HOST, 0, name="server")
    with ExitStack() as idle:
        for _ in range(CONNECTIONS_MAX):
            idle.enter_context(socket.create_connection((HOST, server.port)))
        with socket.create_connection((HOST, server.port), 20) as further:
            assert further.recv(1) == b""
    until(lambda: serves(server.port))
    server.close()


def serves(port):
    try:
        return scrape(port)[-1] == "size 1.0"
    except OSError:
        return False


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
