"""A ZooKeeper server that is behind: what its clients see may be old, and never goes back."""

import pytest

from simulation.machines.zookeeper import Ensemble
from simulation.schedule import US_PER_MS, Process, Schedule
from sparklog.testing.memory_zookeeper import ZooKeeperTree


class Bench:
    """Two clients of one ensemble; what one of them does takes place as an event of its process."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.ensemble = Ensemble(self.schedule, 1, (0.2, 0.4), 2_000, ZooKeeperTree())
        self.ensemble.start()
        self.behind, self.other = (
            self.ensemble.client(Process(self.schedule, host), host) for host in ("behind", "other")
        )
        self.fired: list[str] = []

    def do(self, client, action):
        results = []
        client.process.soon(lambda: results.append(action(client)))
        self.schedule.run_until(self.schedule.now_us + 20 * US_PER_MS)
        return results[0]


@pytest.fixture
def bench():
    bench = Bench()
    bench.do(bench.other, lambda client: client.create("/a", b"old"))
    return bench


def read(client) -> bytes:
    return client.get("/a").data


def test_a_client_of_a_server_that_is_behind_reads_what_was(bench) -> None:
    bench.ensemble.fall_behind("behind")
    bench.do(bench.other, lambda client: client.set("/a", b"new"))
    assert bench.do(bench.behind, read) == b"old"
    assert bench.do(bench.other, read) == b"new"
    bench.ensemble.catch_up("behind")
    assert bench.do(bench.behind, read) == b"new"


def test_whoever_writes_reads_what_was_before_its_write(bench) -> None:
    bench.ensemble.fall_behind("behind")
    bench.do(bench.other, lambda client: client.set("/a", b"new"))
    bench.do(bench.behind, lambda client: client.create("/b"))
    assert bench.do(bench.behind, read) == b"new"


def test_another_connection_never_leads_back(bench) -> None:
    bench.ensemble.fall_behind("behind")
    bench.do(bench.other, lambda client: client.set("/a", b"new"))
    bench.ensemble.cut("behind")
    bench.ensemble.reconnect("behind")
    assert bench.do(bench.behind, read) == b"new"


def test_a_watch_fires_when_the_server_has_heard_of_the_change(bench) -> None:
    bench.do(bench.behind, lambda client: client.watch_data("/a", lambda: bench.fired.append("before")))
    bench.ensemble.fall_behind("behind")
    bench.do(bench.other, lambda client: client.set("/a", b"new"))
    bench.do(bench.behind, lambda client: client.watch_data("/a", lambda: bench.fired.append("meanwhile")))
    assert bench.fired == []
    bench.ensemble.catch_up("behind")
    bench.do(bench.behind, read)
    assert bench.fired == ["before", "meanwhile"]
