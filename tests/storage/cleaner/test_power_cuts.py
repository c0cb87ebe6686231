"""Power cuts at any write of a round, on a disk that loses what was not synced."""

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from simulation.disks.disk import MountedDisk, SimulatedDisk, Trouble
from simulation.schedule import ProcessDied


@dataclass
class Machine:
    """Stands in for a simulated process."""

    name: str = "broker"
    is_alive: bool = True


def filled(make_table, disk: SimulatedDisk, machine: Machine):
    mounted = MountedDisk(disk, machine)
    mounted.make_directory("/data")
    table = make_table(Path("/data"), disk=mounted)
    for nth in range(12):
        table.put((b"%d" % (nth % 2), b"%d" % nth), (b"only-%d" % nth, b"x"), producer=(nth % 3, 0, nth))
        if nth % 3 == 2:
            table.roll()
    table.put((b"end", b"x"))
    table.log.flush()
    return table


def power_fails(make_table, step: int, draw: random.Random):
    """The table as the next start finds it after a power cut at that write; None if the round has fewer."""
    disk, machine = SimulatedDisk(), Machine()
    table = filled(make_table, disk, machine)
    end = table.log.log_end_offset

    def die() -> None:
        machine.is_alive = False
        raise ProcessDied(machine.name)

    disk.trouble = Trouble(step, die, draw.random())
    try:
        table.clean()
    except ProcessDied:
        disk.cut_power(draw)
        table.disk = MountedDisk(disk, Machine("next"))
        table.open(recovery_point=end, same_boot=False)
        return table
    return None


@pytest.mark.bug(
    "B71",
    "words",
    "After a power cut lookups by time miss a compacted segment, and retention misjudges its age.",
)
@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_after_a_round_leaves_no_index_that_leads_astray(make_table, seed: int):
    """An empty one would look like that of a segment whose records have no timestamps."""
    disk = SimulatedDisk()
    mounted = MountedDisk(disk, Machine())
    mounted.make_directory("/data")
    table = make_table(Path("/data"), disk=mounted)
    for nth in range(12):
        table.put((b"%d" % (nth % 2), b"%d" % nth), timestamp_ms=1_000 + nth)
        if nth % 3 == 2:
            table.roll()
    table.put((b"end", b"x"), timestamp_ms=2_000)
    table.log.flush()
    end = table.log.log_end_offset
    table.clean()
    wanted = [segment.greatest_timestamp() for segment in table.log.segments]
    found_at = table.log.offset_for_timestamp(1_011)
    assert found_at == (11, 1_011)
    disk.cut_power(random.Random(seed))
    table.disk = MountedDisk(disk, Machine("next"))
    log = table.open(recovery_point=end, same_boot=False)
    if len(log.segments) == len(wanted):
        assert [segment.greatest_timestamp() for segment in log.segments] == wanted
    assert log.offset_for_timestamp(1_011) == found_at


@pytest.mark.parametrize("seed", range(3))
def test_a_power_cut_at_any_write_leaves_a_log_that_tells_the_same(make_table, seed: int):
    table = filled(make_table, SimulatedDisk(), Machine())
    before, values, end = table.rows(), table.values(), table.log.log_end_offset
    table.clean()
    after = table.rows()
    found = set()
    for step in range(1, 1_000):
        table = power_fails(make_table, step, random.Random(f"{seed}/{step}"))
        if table is None:
            break
        assert table.log.corruption is None
        assert table.values() == values
        assert table.log.log_end_offset == end
        assert sorted(table.log.producers.producers) == [0, 1, 2]
        found.add(tuple(table.rows()))
        assert set(after) <= set(table.rows()) <= set(before)
        table.clean()
        assert table.rows() == after
    assert step > 10
    assert len(found) > 1
