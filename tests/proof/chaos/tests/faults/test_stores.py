"""What the faults of the remote store do to its process, and that the process comes back."""

import subprocess
import sys
import time
from random import Random

import pytest

from chaos.faults.stores import KillStore, PauseStore, StoreFull, StoreSlow, all_of_stores
from chaos.machines.processes import Kept, is_alive
from chaos.nemesis import STORE, STORE_DISK

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
PATIENCE_S = 30.0


class Cluster:
    """A store that only sleeps."""

    session_timeout_s = 1.0

    def __init__(self, folder):
        self.kept = Kept("store", SLEEP, folder, pause_s=0.0)
        self.is_full = False

    def store_pid(self):
        return self.kept.pid

    def hold_store(self):
        self.kept.hold()

    def release_store(self):
        self.kept.release()

    def fill_store(self):
        self.is_full = True

    def free_store(self):
        self.is_full = False


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.kept.stop(PATIENCE_S)


def _until(is_so):
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _state(pid):
    return subprocess.run(
        ["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True
    ).stdout.strip()


def test_a_killed_store_stays_away_until_the_fault_is_over(cluster):
    fault, pid = KillStore(), cluster.store_pid()
    assert str(pid) in fault.begin(cluster, Random(1))
    _until(lambda: not is_alive(pid))
    time.sleep(0.5)  # several looks of its keeper
    assert not cluster.kept.is_alive()
    fault.end()
    fault.end()
    _until(cluster.kept.is_alive)
    assert cluster.store_pid() != pid


def test_a_paused_store_goes_on_when_the_fault_is_over(cluster):
    fault = PauseStore(3.0)
    fault.begin(cluster, Random(1))
    _until(lambda: _state(cluster.store_pid()) == "T")
    fault.end()
    _until(lambda: _state(cluster.store_pid()) == "S")
    assert fault.kind == "pause-store-3x"
    assert 2.0 < fault.seconds(cluster, Random(1)) < 4.0


def test_a_slow_store_runs_and_stands_in_turns_and_runs_at_the_end(cluster):
    fault = StoreSlow()
    assert "% of the time" in fault.begin(cluster, Random(1))
    for state in ("T", "S", "T", "S"):
        _until(lambda state=state: _state(cluster.store_pid()) == state)
    fault.end()
    fault.end()
    assert _state(cluster.store_pid()) == "S"


def test_a_full_store_has_room_again_when_the_fault_is_over(cluster):
    fault = StoreFull()
    fault.begin(cluster, Random(1))
    assert cluster.is_full
    fault.end()
    assert not cluster.is_full


def test_every_fault_of_the_store_needs_one_and_only_a_full_one_needs_a_disk():
    assert all(STORE in one.needs for one in all_of_stores())
    assert [one.kind for one in all_of_stores() if STORE_DISK in one.needs] == ["store-full"]
