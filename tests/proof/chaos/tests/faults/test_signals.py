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

from chaos.faults.signals import (
    EmptyDisk,
    KillLeader,
    PauseInTurns,
    PauseLeader,
    all_signals,
    pick_follower,
    pick_leader,
)
from chaos.machines.processes import is_alive, parent_of
from chaos.nemesis import Broker

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


def test_whoever_led_alone_is_paused_when_the_others_go_on(cluster):
    cluster.led, cluster.session_timeout_s = {("t", 0): 2}, 0.05
    pause = PauseInTurns(3.0)
    pids = {number: process.pid for number, process in cluster.running.items()}
    told = pause.begin(cluster, Random(1))
    assert told == f"broker 2 (process {pids[2]}), leader of t/0, after brokers [1, 3]"
    while _state(pids[2]) != "T" or "T" in (_state(pids[1]), _state(pids[3])):
        time.sleep(0.001)
    pause.end()
    while _state(pids[2]) == "T":
        time.sleep(0.001)


def test_nobody_stays_paused_where_nobody_can_tell_who_leads_alone(cluster):
    def leaders():
        if asked.append(1) or len(asked) > 1:
            raise ConnectionError("no ZooKeeper")
        return cluster.led

    asked, cluster.leaders, cluster.session_timeout_s = [], leaders, 0.05
    pause = PauseInTurns(3.0)
    with pytest.raises(ConnectionError):
        pause.begin(cluster, Random(1))
    pause.end()
    for process in cluster.running.values():
        while _state(process.pid) == "T":
            time.sleep(0.001)


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
