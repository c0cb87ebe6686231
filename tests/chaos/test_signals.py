"""Whom the faults by signals choose, and what they do."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from chaos.nemesis import Broker
from chaos.processes import is_alive, parent_of
from chaos.signals import EmptyDisk, KillLeader, PauseLeader, all_signals, pick_follower, pick_leader

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


@dataclass
class Brokers:
    """A cluster of processes that only sleep."""

    folder: Path
    led: dict[tuple[str, int], int]
    session_timeout_s: float = 1.0
    running: dict[int, subprocess.Popen] = field(default_factory=dict)

    def brokers(self):
        return {
            number: Broker(number, process.pid, "127.0.0.1", 0, (self.folder / str(number) / "0",))
            for number, process in self.running.items()
        }

    def leaders(self):
        return self.led


@pytest.fixture
def cluster(tmp_path):
    found = Brokers(tmp_path, {("t", 0): 2, ("t", 1): 2, ("t", 2): 3})
    for number in (1, 2, 3):
        found.running[number] = subprocess.Popen(SLEEP)
    yield found
    for process in found.running.values():
        process.kill()
        process.wait()


def test_a_leader_is_one_that_leads_something_and_a_follower_leads_least(cluster):
    assert {pick_leader(cluster, Random(seed)).id for seed in range(20)} == {2, 3}
    assert {pick_follower(cluster, Random(seed)).id for seed in range(20)} == {1}


def test_without_any_leader_every_broker_may_be_chosen(cluster):
    cluster.led = {}
    assert {pick_leader(cluster, Random(seed)).id for seed in range(40)} == {1, 2, 3}


def test_the_same_seed_chooses_the_same(cluster):
    chosen = [pick_leader(cluster, Random(5)).id for _ in range(5)]
    assert len(set(chosen)) == 1


def test_a_killed_leader_is_dead_and_told_with_what_it_led(cluster):
    cluster.led = {("t", 1): 3}
    pid = cluster.running[3].pid
    assert KillLeader().begin(cluster, Random(1)) == f"broker 3 (process {pid}), leader of t/1"
    assert cluster.running[3].wait(10) == -signal.SIGKILL


def _state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_paused_leader_goes_on_at_the_end_and_a_second_end_does_no_harm(cluster):
    cluster.led = {("t", 0): 1}
    pause = PauseLeader(3.0)
    pause.begin(cluster, Random(1))
    pid = cluster.running[1].pid
    while _state(pid) != "T":
        time.sleep(0.001)
    pause.end()
    pause.end()
    while _state(pid) == "T":
        time.sleep(0.001)
    assert parent_of(pid) == os.getpid()


def test_pauses_last_about_their_share_of_the_session_timeout(cluster):
    assert 2.7 <= PauseLeader(3.0).seconds(cluster, Random(1)) <= 3.3


def test_an_emptied_disk_belongs_to_a_process_that_is_gone(cluster):
    cluster.led = {("t", 0): 2}
    log_dir = cluster.brokers()[2].log_dirs[0]
    (log_dir / "t-0").mkdir(parents=True)
    (log_dir / "t-0" / "00000000000000000000.log").write_bytes(b"records")
    EmptyDisk().begin(cluster, Random(1))
    assert not is_alive(cluster.running[2].pid)
    assert not log_dir.exists()
    assert list(log_dir.parent.iterdir()) == []


def test_kinds_have_different_names_and_this_machine_allows_them():
    kinds = [nemesis.kind for nemesis in all_signals()]
    assert len(kinds) == len(set(kinds))
    assert [nemesis.probe() for nemesis in all_signals()] == [None] * len(kinds)
