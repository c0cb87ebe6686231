"""A log is cut, others come in the place of the old records, and the power goes before anything is synced."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sparklog.storage.log_config import LogConfig
from sparklog.testing.simulation.disk import MountedDisk, SimulatedDisk

Bench = Any
SMALL = LogConfig(segment_bytes=1_000, index_interval_bytes=150)


@dataclass
class Machine:
    """Stands in for a simulated process."""

    name: str = "broker"
    is_alive: bool = True


@pytest.mark.parametrize("way", ["cut", "begin anew"])
def test_no_segment_of_before_a_cut_comes_back_behind_what_was_appended_after_it(
    make_bench: Any, way: str
) -> None:
    last_epochs = set()
    for seed in range(60):
        disk = SimulatedDisk()
        mounted = MountedDisk(disk, Machine())
        mounted.make_directory("/data")
        bench: Bench = make_bench(Path("/data"), disk=mounted)
        log = bench.open(SMALL)
        for _ in range(30):
            bench.append(log, epoch=1)
        log.flush()
        if way == "cut":
            log.truncate_to(5)
        else:
            log.truncate_fully_and_start_at(5)
        for _ in range(5):
            bench.append(log, epoch=2)
        disk.cut_power(random.Random(seed))
        bench.disk = MountedDisk(disk, Machine("next"))
        found = bench.open(SMALL, recovery_point=log.recovery_point, same_boot=False)
        assert found.corruption is None
        epochs = [header.leader_epoch for header in bench.headers(found)]
        assert epochs == sorted(epochs)
        last_epochs.add(epochs[-1] if epochs else None)
    assert len(last_epochs) > 1
