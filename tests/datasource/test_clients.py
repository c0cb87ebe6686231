"""One client per cluster and process, and never one across a fork."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from socket import gethostname

import pytest

from sparklog.client.calls import retry
from sparklog.client.errors import ClientClosed
from sparklog.model.errors import ConfigError
from sparklog_datasource import clients
from sparklog_datasource.clients import cluster_client
from sparklog_datasource.options.option_parsing import ConnectionOptions

CONNECTION = ConnectionOptions(
    bootstrap_servers="127.0.0.1:1", client_id="test", request_timeout_ms=1_000, retry_timeout_ms=1_000
)


@pytest.fixture(autouse=True)
def _forget_clients() -> Iterator[None]:
    yield
    for connection in [key for key in clients._clients if key.bootstrap_servers == "127.0.0.1:1"]:
        clients._clients.pop(connection).close()


def test_the_same_cluster_has_the_same_client() -> None:
    assert cluster_client(CONNECTION) is cluster_client(replace(CONNECTION))
    assert cluster_client(CONNECTION) is not cluster_client(replace(CONNECTION, auto_create_topics=True))


def test_other_credentials_have_another_client() -> None:
    one, other = (
        cluster_client(replace(CONNECTION, security=(("security.protocol", text),)))
        for text in ("plaintext", "PLAINTEXT")
    )
    assert one is not other


def test_an_authority_that_is_missing_on_this_host_is_told_with_the_host(tmp_path: Path) -> None:
    missing = tmp_path / "ca.pem"
    security = (("security.protocol", "SSL"), ("ssl.truststore.location", str(missing)))
    with pytest.raises(ConfigError, match=rf"^on host {gethostname()}: .*{missing}"):
        cluster_client(replace(CONNECTION, security=security)).metadata()


def test_a_closed_client_is_replaced() -> None:
    first = cluster_client(CONNECTION)
    first.close()
    assert cluster_client(CONNECTION) is not first


def test_a_forked_child_makes_its_own_client() -> None:
    """In the child itself, without a fork here: the test's process has threads."""
    first = cluster_client(CONNECTION)
    clients._after_fork_in_child()
    second = cluster_client(CONNECTION)
    assert second is not first
    assert not first.is_closed
    clients._inherited.remove(first)
    first.close()


def test_the_hook_runs_at_a_real_fork() -> None:
    first = cluster_client(CONNECTION)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write_end, b"1" if cluster_client(CONNECTION) is not first else b"0")
        os._exit(0)
    os.close(write_end)
    assert os.read(read_end, 1) == b"1"
    os.close(read_end)
    assert os.waitpid(child, 0)[1] == 0


def test_brokers_that_do_not_answer_are_told_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retry, "REPORTED_AFTER_S", 0.0)
    client = cluster_client(replace(CONNECTION, retry_timeout_ms=60_000))
    monkeypatch.setattr(client, "_tell", lambda line: (clients._warn(line), client.close()))
    with pytest.raises(ClientClosed):
        client.metadata()
    assert [message.partition(" has")[0] for message in caplog.messages] == ["no broker of 127.0.0.1:1"]


def test_every_client_tells_its_user() -> None:
    assert cluster_client(CONNECTION)._tell is clients._warn
