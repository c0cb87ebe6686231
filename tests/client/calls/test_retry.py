"""A client whose brokers are silent says so in seconds, once, and goes on trying."""

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sparklog.client.calls import retry as module
from sparklog.client.calls.retry import reported_if_long
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClientClosed

Start = Callable[..., Any]


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REPORTED_AFTER_S", 0.05)


@pytest.mark.usefixtures("early")
def test_a_block_that_takes_long_is_told_of_once_and_a_short_one_never() -> None:
    lines: list[str] = []
    told = threading.Event()

    def tell(line: str) -> None:
        lines.append(line)
        told.set()

    with reported_if_long(tell, lambda: "quick"):
        pass
    with reported_if_long(tell, lambda: "slow"):
        assert told.wait(10)
    with reported_if_long(None, lambda: "nobody listens"):
        pass
    assert lines == ["slow"]


def line_about(servers: str) -> str:
    """What a client tells about servers that do not answer; it is closed in the middle of its trying."""
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        client.close()

    with ClusterClient(servers, tell=tell) as client, pytest.raises(ClientClosed):
        client.metadata()
    (line,) = lines
    return line


def test_a_port_that_refuses_is_told_of_while_the_client_goes_on_trying(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "REPORTED_AFTER_S", 1.0)  # the first attempt has failed by then
    with socket.socket() as taken:  # it does not listen, and nobody else can take its port
        taken.bind(("127.0.0.1", 0))
        servers = f"127.0.0.1:{taken.getsockname()[1]}"
        line = line_about(servers)
    assert line.startswith(f"no broker of {servers} has answered for ")
    assert "refused" in line
    assert line.endswith("is this its address? It is tried for 60 s in all")


@pytest.mark.usefixtures("early")
def test_a_peer_that_never_answers_is_told_of_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        line = line_about(f"127.0.0.1:{silent.getsockname()[1]}")
    assert "no answer" in line


def test_a_cluster_that_answers_is_not_told_of(start_fake: Start) -> None:
    lines: list[str] = []
    fake = start_fake(1)
    with ClusterClient(fake.bootstrap_servers, tell=lines.append) as client:
        client.metadata()
        client.metadata(max_age_ms=0)
    assert lines == []
