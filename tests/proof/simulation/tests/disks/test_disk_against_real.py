"""The same random operations on a real directory and on a simulated disk: nobody can tell them apart."""

import random
from pathlib import Path

import pytest

from simulation.disks.disk import SimulatedDisk
from simulation.real_disks.steps import Side, Step, random_step
from simulation.schedule import Process, Schedule
from sparklog.storage.disk import LocalDisk

SEEDS, STEPS = 60, 120


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_operations_have_the_same_outcome(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    mounted = SimulatedDisk().mount(Process(Schedule(), "broker-1"))
    mounted.make_directory("/data")
    (tmp_path / "data").mkdir()
    real, simulated = Side(LocalDisk(), f"{tmp_path}/data"), Side(mounted, "/data")
    story: list[Step] = []
    for _ in range(STEPS):
        step = random_step(dice)
        story.append(step)
        told = "\n".join(str(one)[:100] for one in story[-15:])
        assert simulated.take(step) == real.take(step), told
        assert simulated.everything() == real.everything(), told
