"""The server of the page over real sockets: how many connections, and how it ends."""

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from starlette.responses import PlainTextResponse

from sparklog.web.command import listening_at
from sparklog.web.serving import CONNECTIONS_MAX, PageServer

pytestmark = pytest.mark.integration


@contextmanager
def served(
    is_over: Callable[[float], bool] = lambda _: False,
) -> Iterator[tuple[int, PageServer, threading.Thread]]:
    server = PageServer(PlainTextResponse("here"), is_over=is_over)
    with listening_at("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        thread = threading.Thread(target=server.serve, args=(listening,))
        thread.start()
        try:
            yield port, server, thread
        finally:
            server.stop()
            thread.join(30)
            assert not thread.is_alive()


def get(port: int) -> tuple[http.client.HTTPConnection, int]:
    """A connection that stays open, and the status of its first answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/")
    answer = connection.getresponse()
    answer.read()
    return connection, answer.status


def test_a_hundred_tabs_share_at_most_64_connections_and_the_next_one_is_refused() -> None:
    with served() as (port, _, _):
        found = [get(port) for _ in range(CONNECTIONS_MAX + 1)]
        statuses = [status for _, status in found]
        assert statuses[: CONNECTIONS_MAX - 1] == [200] * (CONNECTIONS_MAX - 1)
        assert statuses[-1] == 503
        for connection, _ in found:
            connection.close()


def test_a_connection_that_is_kept_open_does_not_hold_back_the_end() -> None:
    with served() as (port, server, thread):
        connection, status = get(port)
        assert status == 200
        server.stop()
        thread.join(30)
        assert not thread.is_alive()
        connection.close()


def test_a_page_that_nobody_uses_ends_by_itself() -> None:
    with served(lambda unused_s: unused_s > 0) as (_, _, thread):
        thread.join(30)
        assert not thread.is_alive()


def test_what_is_no_http_is_refused_and_does_no_harm() -> None:
    with served() as (port, _, _):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
            raw.sendall(b"\x00\x00\x00\x12\x00\x03 a Kafka frame\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 400")
        connection, status = get(port)
        assert status == 200
        connection.close()
