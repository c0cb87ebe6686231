"""Calls to a disk that fail as faults: whom they strike, what they say, that they end. No root."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from chaos.faults.disks import DiskFull, NothingFailed, SlowSyncs, SyncFails, WriteFails
from chaos.machines import shim
from chaos.machines.bench import Bench, BenchOptions
from chaos.machines.places import PlainPlaces
from chaos.nemesis import CRASH_POINTS, INJECTION, Broker

WRITER = """
import os, sys, time
file = os.open(sys.argv[1] + "/log", os.O_RDWR | os.O_CREAT)
while True:
    for call in (lambda: os.pwrite(file, b"x" * 4096, 0), lambda: os.fsync(file)):
        try:
            call()
        except OSError as error:
            print(error.errno, flush=True)
    time.sleep(0.001)
"""
IDLE = "import time; time.sleep(600)"
EIO, ENOSPC = 5, 28


@dataclass
class TwoBrokers:
    """Processes that write and sync without an end; 2 leads."""

    places: PlainPlaces
    folder: Path
    session_timeout_s: float = 1.0
    processes: dict[int, subprocess.Popen] = field(default_factory=dict)

    def start(self, program=WRITER):
        for number in (1, 2):
            log_dir = self.places.log_dir(self.folder, number)
            log_dir.mkdir(exist_ok=True)
            self.processes[number] = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", program, str(log_dir)],
                env={**os.environ, **self.places.environment(number)},
                stdout=subprocess.PIPE,
                text=True,
            )

    def stop(self):
        while self.processes:
            process = self.processes.popitem()[1]
            process.kill()
            process.communicate()

    def brokers(self):
        return {number: Broker(number, one.pid, "127.0.0.1", 0, ()) for number, one in self.processes.items()}

    def leaders(self):
        return {("t", 0): 2}

    def errors(self, number):
        """What the process was told, which is ended by this."""
        process = self.processes.pop(number)
        process.kill()
        return [int(line) for line in process.communicate()[0].split()]


@pytest.fixture
def cluster(tmp_path):
    if (why := shim.probe()) is not None:
        pytest.skip(f"not run: {why}")
    places = PlainPlaces(with_shim=True)
    places.set_up(tmp_path, [1, 2])
    made = TwoBrokers(places, tmp_path)
    yield made
    made.stop()
    places.tear_down()


def _log(cluster):
    return cluster.places.log_dir(cluster.folder, 2) / "log"


def test_a_write_of_the_leader_fails_and_the_path_is_told(cluster):
    cluster.start()
    nemesis = WriteFails(cluster.places)
    told = {nemesis.begin(cluster, Random(seed)).partition(":")[0] for seed in range(24)}
    nemesis.end()
    assert all(text.endswith(f"first of {_log(cluster)}") for text in told)
    assert {text.partition(",")[0] for text in told} >= {"1 writes fail with EIO", "3 writes fail with EIO"}
    assert set(cluster.errors(2)) == {EIO, ENOSPC}
    assert cluster.errors(1) == []


def test_a_sync_fails_once(cluster):
    cluster.start()
    nemesis = SyncFails(cluster.places)
    told = nemesis.begin(cluster, Random(1))
    nemesis.end()
    assert told == (
        f"a sync fails with EIO, first of {_log(cluster)}: "
        f"broker 2 (process {cluster.processes[2].pid}), leader of t/0"
    )
    assert cluster.errors(2) == [EIO]


def test_a_full_disk_stays_full_until_the_end(cluster):
    cluster.start()
    nemesis = DiskFull(cluster.places)
    told = nemesis.begin(cluster, Random(1))
    assert told.startswith("no room after ")
    controls = cluster.places.controls(2)
    while controls.failed()[0] < 10:
        time.sleep(0.001)
    nemesis.end()
    _log(cluster).write_bytes(b"")
    while _log(cluster).stat().st_size < 4096:
        time.sleep(0.001)
    errors = cluster.errors(2)
    assert len(errors) >= 10
    assert set(errors) == {ENOSPC}


def test_what_nobody_calls_is_no_strike_and_is_taken_away(cluster, monkeypatch):
    monkeypatch.setattr("chaos.faults.disks.FAILS_TIMEOUT_S", 0.05)
    cluster.start(IDLE)
    for nemesis in (WriteFails(cluster.places), SyncFails(cluster.places), DiskFull(cluster.places)):
        with pytest.raises(NothingFailed, match="no such call"):
            nemesis.begin(cluster, Random(1))
        nemesis.end()
    cluster.stop()
    cluster.start()
    controls = cluster.places.controls(2)
    before = controls.counts()["sync"]
    while controls.counts()["sync"] < before + 5:
        time.sleep(0.001)
    assert controls.failed() == (0, 0)


def test_slow_syncs_are_waited_for_by_nobody(cluster):
    cluster.start(IDLE)
    nemesis = SlowSyncs(cluster.places)
    assert "s longer: broker 2" in nemesis.begin(cluster, Random(1))
    nemesis.end()


@pytest.mark.parametrize("kind", [DiskFull, WriteFails, SyncFails, SlowSyncs])
def test_calls_fail_wherever_the_shim_can_be_made(kind, monkeypatch):
    monkeypatch.setattr("chaos.machines.shim.probe", lambda: "gcc is not installed")
    assert kind(PlainPlaces()).probe() == "gcc is not installed"
    monkeypatch.setattr("chaos.machines.shim.probe", lambda: None)
    assert kind(PlainPlaces()).probe() is None
    assert kind.needs == {INJECTION}


@pytest.mark.parametrize(("spark", "has_it"), [("workers", True), ("local", False)])
def test_brokers_in_one_jvm_have_no_calls_that_could_fail(tmp_path, spark, has_it):
    bench = Bench(BenchOptions(tmp_path, spark=spark), PlainPlaces(with_shim=True))
    assert ({CRASH_POINTS, INJECTION} <= bench.features) is has_it
