import threading

import pytest

from sparklog.model.zookeeper import ConnectionLost
from sparklog.testing.memory_zookeeper import MemoryZooKeeperServer

WAIT_S = 60


@pytest.fixture
def server() -> MemoryZooKeeperServer:
    return MemoryZooKeeperServer()


def test_a_call_without_a_connection_ends_in_time_and_was_not_sent(server: MemoryZooKeeperServer) -> None:
    with server.client(operation_timeout_ms=20) as client, server.client() as other:
        client.lose_connection()
        with pytest.raises(ConnectionLost, match="nothing was sent"):
            client.create("/a")
        assert other.exists("/a") is None


def test_a_call_waits_for_the_connection_to_come_back(server: MemoryZooKeeperServer) -> None:
    with server.client() as client:
        client.create("/brief", ephemeral=True)
        client.lose_connection()
        restore = threading.Timer(0.02, client.restore_connection)
        restore.start()
        assert client.exists("/brief") is not None
        assert client.generation == 0
        restore.join()


def test_a_session_that_expired_without_connection_is_noticed_on_return(
    server: MemoryZooKeeperServer,
) -> None:
    with server.client() as client, server.client() as other:
        client.create("/brief", ephemeral=True)
        client.lose_connection()
        client.expire_session()
        assert (client.generation, other.exists("/brief")) == (0, None)
        client.restore_connection()
        assert client.generation == 1


def test_a_callback_that_calls_zookeeper_is_told_off(
    server: MemoryZooKeeperServer, caplog: pytest.LogCaptureFixture
) -> None:
    with server.client() as client:
        called = threading.Event()
        client.watch_data("/a", lambda: client.delete("/a"))
        client.watch_data("/a", called.set)
        client.create("/a")
        assert called.wait(WAIT_S)
        assert client.exists("/a") is not None
    assert "would wait for itself" in caplog.text


def test_a_closed_client_calls_nobody_and_leaves_no_thread(server: MemoryZooKeeperServer) -> None:
    client, other = server.client(), server.client()
    called: list[str] = []
    client.watch_data("/a", lambda: called.append("data"))
    client.on_session(called.append)
    client.create("/brief", ephemeral=True)
    client.close()
    client.close()
    other.create("/a")
    assert (called, other.children("/")) == ([], ["a"])
    other.close()
    assert not client._dispatcher.is_alive()
