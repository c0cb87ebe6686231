"""The embedded ZooKeeper is started again when it is known how it ended, and not before."""

import queue

import pytest

from sparklog_runtime.driver_servers import zookeeper_keeper
from sparklog_runtime.driver_servers.zookeeper_keeper import ZooKeeperKeeper

WAIT_S = 10.0
FIRST, SECOND = 4_000_001, 4_000_002
"""Beyond Linux's greatest process id: whoever looks for such a process finds none."""


class DyingServer:
    """Its first process is gone; how it ended is known when ``collect`` was called."""

    connect_string = "127.0.0.1:2181"

    def __init__(self) -> None:
        self.pid: int | None = None
        self.exit_status: int | None = None
        self.looks: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.starts = 0

    def __getattribute__(self, name):
        if name == "pid":
            self.looks.put(None)
        return super().__getattribute__(name)

    def start(self):
        self.starts += 1
        self.pid = (FIRST, SECOND)[self.starts - 1]

    def collect(self, exit_status):
        self.exit_status, self.pid = exit_status, None

    def stop(self):
        self.pid = None


@pytest.fixture
def server():
    return DyingServer()


@pytest.fixture
def notices():
    return queue.SimpleQueue()


@pytest.fixture
def keeper(server, notices, tmp_path, monkeypatch):
    monkeypatch.setattr(zookeeper_keeper, "LOOK_INTERVAL_S", 0.001)
    made = ZooKeeperKeeper(
        lambda data_dir, port: server, tmp_path, on_change=lambda: None, notice=notices.put
    )
    made.launch()
    assert made.wait_started(WAIT_S)
    yield made
    made.stop()


def test_a_process_that_dies_is_replaced_when_it_is_known_how_it_ended(keeper, server, notices):
    for _ in range(10):
        server.looks.get(timeout=WAIT_S)
    assert server.starts == 1
    server.collect(-9)
    assert notices.get(timeout=WAIT_S) == (
        f"ZooKeeper (process {FIRST}) was killed by SIGKILL; it is started again"
    )
    assert notices.get(timeout=WAIT_S).startswith(f"ZooKeeper is back as process {SECOND} after ")
    assert server.starts == 2
