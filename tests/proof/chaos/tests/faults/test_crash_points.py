"""Crash points as faults: whom they end, where, and what is counted of it."""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from chaos.faults.crash_points import (
    IN_START,
    NUMBERS,
    CrashPointInStart,
    CrashPointKill,
    Deck,
    NotReached,
)
from chaos.machines import shim
from chaos.machines.places import PlainPlaces
from chaos.machines.processes import is_alive, kill_and_wait
from chaos.nemesis import Broker
from chaos.report import CrashPoint, points_table

BUSY = """
import os, sys, time
os.chdir(sys.argv[1])
while True:
    os.makedirs("d")
    file = os.open("d/f.tmp", os.O_RDWR | os.O_CREAT)
    os.write(file, b"1234")
    os.fsync(file)
    os.ftruncate(file, 2)
    os.close(file)
    os.rename("d/f.tmp", "d/f")
    os.remove("d/f")
    os.rmdir("d")
    time.sleep(0.001)
"""
IDLE = "import time; time.sleep(600)"


@dataclass
class OneBroker:
    """A cluster of one process, which is started again whenever somebody looks whether it has registered."""

    places: PlainPlaces
    folder: Path
    program: str = BUSY
    features: frozenset[str] = frozenset()
    starts: int = 0
    processes: list[subprocess.Popen] = field(default_factory=list)

    def start(self):
        folder = self.places.log_dir(self.folder, 1).parent / f"life-{len(self.processes)}"
        folder.mkdir()
        environment = {**os.environ, **self.places.environment(1)}
        command = [sys.executable, "-I", "-S", "-c", self.program, str(folder)]
        self.processes.append(subprocess.Popen(command, env=environment))

    def brokers(self):
        return {1: Broker(1, self.processes[-1].pid, "127.0.0.1", 0, ())}

    def leaders(self):
        return {("t", 0): 1}

    def registration(self, broker_id):
        if not is_alive(self.processes[-1].pid):
            self.start()
        return 7 if len(self.processes) <= self.starts else 8


@pytest.fixture
def cluster(tmp_path):
    if (why := shim.probe()) is not None:
        pytest.skip(f"not run: {why}")
    places = PlainPlaces(with_shim=True)
    places.set_up(tmp_path, [1])
    made = OneBroker(places, tmp_path)
    yield made
    kill_and_wait([process.pid for process in made.processes])
    for process in made.processes:
        process.wait()
    places.tear_down()


def test_every_kind_of_call_comes_before_any_comes_again():
    deck, rng = Deck(NUMBERS), Random(1)
    for _ in range(3):
        drawn = dict(deck.draw(rng) for _ in NUMBERS)
        assert set(drawn) == set(NUMBERS)
        assert all(1 <= number <= NUMBERS[call] for call, number in drawn.items())


def test_a_broker_is_ended_at_each_kind_of_call_and_counted(cluster):
    nemesis, rng = CrashPointKill(cluster.places), Random(2)
    for _ in NUMBERS:
        cluster.start()
        told = nemesis.begin(cluster, rng)
        nemesis.end()
        assert cluster.processes[-1].wait() == -9
        assert told.startswith(("SIGKILL before", "SIGKILL in the middle of write"))
    assert {point.call for point in nemesis.points} == set(NUMBERS)
    assert all(point.is_reached and point.how == "SIGKILL" for point in nemesis.points)


def test_a_point_that_nobody_comes_to_is_no_strike_and_is_taken_away(cluster, monkeypatch):
    monkeypatch.setattr("chaos.faults.crash_points.REACHED_TIMEOUT_S", 0.05)
    cluster.program = IDLE
    cluster.start()
    nemesis = CrashPointKill(cluster.places)
    with pytest.raises(NotReached, match="of broker 1 in 0"):
        nemesis.begin(cluster, Random(3))
    nemesis.end()
    assert [point.is_reached for point in nemesis.points] == [False]
    cluster.program = BUSY
    cluster.start()
    assert is_alive(cluster.processes[-1].pid)
    assert cluster.places.controls(1).reached() is None


def test_the_second_point_is_met_by_the_next_process_before_it_has_registered(cluster):
    cluster.starts = 3
    cluster.start()
    nemesis = CrashPointInStart(cluster.places)
    told = nemesis.begin(cluster, Random(4))
    nemesis.end()
    assert "; then starting SIGKILL " in told
    assert [process.wait() for process in cluster.processes[:2]] == [-9, -9]
    assert [point.phase for point in nemesis.points] == ["running", "starting"]
    assert nemesis.points[1].call in IN_START


def test_a_start_that_comes_to_its_end_without_that_call_is_counted_as_not_reached(cluster, monkeypatch):
    monkeypatch.setattr("chaos.faults.crash_points.CATCHING_UP_S", 0.2)
    cluster.starts = 1
    cluster.start()
    cluster.program = IDLE  # what is started again does nothing
    nemesis = CrashPointInStart(cluster.places)
    told = nemesis.begin(cluster, Random(5))
    nemesis.end()
    assert "; its start had no " in told
    assert [point.is_reached for point in nemesis.points] == [True, False]
    assert is_alive(cluster.processes[-1].pid)


def test_the_table_counts_each_call_by_how_and_when_and_what_was_never_reached():
    points = [
        CrashPoint("rename", "SIGKILL", "running", True, "a"),
        CrashPoint("rename", "power cut", "starting", True, "b"),
        CrashPoint("rename", "power cut", "starting", False),
        CrashPoint("write", "power cut", "running", True, "c"),
    ]
    assert points_table(points)[1:] == [
        ("rename", "1", "0", "0", "1", "0", "0", "1"),
        ("write", "0", "1", "0", "0", "0", "0", "0"),
        ("all", "1", "1", "0", "1", "0", "0", "1"),
    ]
