"""A process that dies, or loses its power, while records leave its disk: their history is not lost."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from simulation.disks.disk import MountedDisk, SimulatedDisk
from sparklog.core.replication.epoch_history import EarlierHistory, EpochEntry
from sparklog.model.ids import LeaderEpoch, Offset
from sparklog.storage.log import Log
from sparklog.storage.log_config import LogConfig
from tests.storage.test_cuts_and_power_cuts import Machine, StopsAt

Bench = Any
SMALL = LogConfig(segment_bytes=1_000, index_interval_bytes=150)
EPOCHS = [(2, 0), (3, 5), (4, 15)]


def filled(bench: Bench) -> Log:
    """Segments at 0, 10 and 20; all flushed; the end is 25."""
    log: Log = bench.open(SMALL)
    for offset in range(25):
        bench.append(log, epoch=2 + (offset >= 5) + (offset >= 15), producer=(7, 0, offset))
    log.flush()
    return log


def after_each_stop(
    make_bench: Any, stop: str, change: Callable[[Log], object], prepare: Callable[[Log], object]
) -> Iterator[tuple[Log, bool]]:
    """The log that the next start finds, and whether ``change`` was through."""
    for step, seed in [(step, seed) for step in range(40) for seed in range(4 if stop == "power cut" else 1)]:
        disk = SimulatedDisk()
        stopping = StopsAt(MountedDisk(disk, Machine()))
        stopping.make_directory("/data")
        bench: Bench = make_bench(Path("/data"), disk=stopping)
        log = filled(bench)
        prepare(log)
        stopping.left, is_done = step, True
        try:
            change(log)
        except KeyboardInterrupt:
            is_done = False
        if stop == "power cut":
            disk.cut_power(random.Random(seed))
        bench.disk = MountedDisk(disk, Machine("next"))
        yield (
            bench.open(SMALL, recovery_point=log.recovery_point, same_boot=stop == "kill", high_watermark=0),
            is_done,
        )


def delete_locally(log: Log) -> None:
    log.delete_local_segments(20)


def leave(_log: Log) -> None:
    """Nothing is left to prepare."""


def epochs(log: Log) -> list[tuple[int, int]]:
    return [(int(entry.epoch), int(entry.start_offset)) for entry in log.epochs.entries]


@pytest.mark.parametrize("stop", ["kill", "power cut"])
def test_a_local_deletion_costs_neither_the_log_start_nor_an_epoch(make_bench: Any, stop: str) -> None:
    found = set()
    for log, is_done in after_each_stop(make_bench, stop, delete_locally, leave):
        assert (log.log_start_offset, log.log_end_offset, log.corruption) == (0, 25, None)
        assert epochs(log) == EPOCHS
        assert log.producers.producers[7].last_sequence == 24
        found.add((int(log.local_start_offset), is_done))
    assert {(0, False), (20, True)} <= found


@pytest.mark.parametrize("stop", ["kill", "power cut"])
@pytest.mark.parametrize("offset", [12, 25, 500])
def test_a_log_that_begins_anew_has_the_leaders_history_or_its_own_and_never_none(
    make_bench: Any, offset: int, stop: str
) -> None:
    """Without the history before its local start it would make every replica delete that."""
    entries = (EpochEntry(LeaderEpoch(1), Offset(3)), EpochEntry(LeaderEpoch(6), Offset(9)))
    found = set()
    for log, is_done in after_each_stop(
        make_bench,
        stop,
        lambda log: log.truncate_fully_and_start_at(offset, None, EarlierHistory(3, entries)),
        delete_locally,
    ):
        starts = int(log.log_start_offset), int(log.local_start_offset)
        if log.log_end_offset == 0:
            found.add("nothing, and the leader is asked once more")
        elif starts == (3, offset):
            assert epochs(log) == [(1, 3), (6, 9)]
            found.add("the leader's")
        else:
            assert not is_done or stop == "power cut", starts
            assert starts in {(0, 20), (3, 20), (0, 0)}, starts
            found.add("its own")
    assert {"the leader's", "its own"} <= found


@pytest.mark.parametrize("stop", ["kill", "power cut"])
def test_a_log_start_that_rises_in_the_remote_part_is_the_old_or_the_new_one(
    make_bench: Any, stop: str
) -> None:
    found = set()
    for log, _ in after_each_stop(make_bench, stop, lambda log: log.raise_log_start(7), delete_locally):
        start = int(log.log_start_offset)
        assert epochs(log) == ([(3, 7), (4, 15)] if start == 7 else EPOCHS)
        found.add(start)
    assert found == {0, 7}
