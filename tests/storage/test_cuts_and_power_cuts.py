"""A log is cut, others come in the place of the old records, and the power goes before anything is synced."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from simulation.disks.disk import MountedDisk, SimulatedDisk
from sparklog.storage.log_config import LogConfig

Bench = Any
SMALL = LogConfig(segment_bytes=1_000, index_interval_bytes=150)


@dataclass
class Machine:
    """Stands in for a simulated process."""

    name: str = "broker"
    is_alive: bool = True


def benches_on_a_disk(make_bench: Any) -> Any:
    """Benches, each with an empty disk, and what cuts its power and gives it to the next process."""
    for seed in range(60):
        disk = SimulatedDisk()
        mounted = MountedDisk(disk, Machine())
        mounted.make_directory("/data")
        bench = make_bench(Path("/data"), disk=mounted)

        def cut_power(seed: int = seed, disk: SimulatedDisk = disk, bench: Bench = bench) -> None:
            disk.cut_power(random.Random(seed))
            bench.disk = MountedDisk(disk, Machine("next"))

        yield bench, cut_power


@pytest.mark.bug("B72", "records", "After a power cut of everything a log without batches ranks too low.")
@pytest.mark.parametrize("way", ["retention", "begin anew"])
def test_a_log_without_batches_knows_the_same_epochs_after_a_power_cut(make_bench: Any, way: str) -> None:
    """By (last epoch, end) logs are compared when nobody's is proven; nothing else tells the epoch now."""
    config = LogConfig(segment_bytes=1_000, index_interval_bytes=150, retention_ms=10)
    ends = set()
    for bench, cut_power in benches_on_a_disk(make_bench):
        log = bench.open(config)
        for epoch in range(8):
            bench.append(log, epoch=epoch, timestamp=1_000)
            if epoch == 5:
                log.flush()
        bench.clock.now_ms += 1_000
        if way == "retention":
            assert log.delete_old_segments(8)
            assert log.epochs.entries == [(7, 8)]
        else:
            log.truncate_fully_and_start_at(8)
            assert log.epochs.entries == []
        cut_power()
        found = bench.open(config, recovery_point=min(6, log.recovery_point), same_boot=False)
        if not bench.headers(found):
            assert found.epochs == log.epochs
        ends.add(found.log_end_offset)
    assert 8 in ends


def test_wherever_a_log_begins_after_a_power_cut_it_knows_who_sent_before(make_bench: Any) -> None:
    """Several segments go at once, and the power while some of them are gone."""
    starts = set()
    for bench, cut_power in benches_on_a_disk(make_bench):
        log = bench.open(SMALL)
        for number in range(35):
            bench.append(log, producer=(7, 0, number) if number < 15 else (8, 0, number - 15))
        log.delete_local_segments(30)
        cut_power()
        found = bench.open(SMALL, recovery_point=log.recovery_point, same_boot=False)
        starts.add(int(found.local_start_offset))
        if found.local_start_offset > 0:
            sent = min(15, max(found.log_end_offset, found.local_start_offset)) - 1
            assert found.producers.producers[7].last_sequence == sent, found
    assert starts >= {0, 10, 20, 30}


@pytest.mark.bug("B46", "records", "Retention leaves a log without its producer states.")
def test_retention_leaves_what_was_sent_before_it_whatever_a_power_cut_takes(make_bench: Any) -> None:
    """The log begins where its leader's does: nobody will be asked."""
    config = LogConfig(segment_bytes=1_000, index_interval_bytes=150, retention_ms=10)
    emptied = 0
    for bench, cut_power in benches_on_a_disk(make_bench):
        log = bench.open(config)
        for number in range(30):
            bench.append(log, producer=(7, 0, number), timestamp=1_000)
        bench.clock.now_ms += 1_000
        assert log.delete_old_segments(30)
        cut_power()
        found = bench.open(config, recovery_point=log.recovery_point, same_boot=False)
        if found.log_start_offset == 30:
            emptied += 1
            assert found.producers.producers[7].last_sequence == 29
    assert emptied


class StopsAt:
    """A disk whose process is killed before its ``left``-th change, if there is one."""

    CHANGES = (
        "open",
        "remove",
        "remove_directory",
        "rename",
        "sync_directory",
        "sync_file",
        "write_atomically",
    )

    def __init__(self, disk: MountedDisk) -> None:
        self.disk, self.left = disk, -1

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.disk, name)
        return self._counted(operation) if name in self.CHANGES else operation

    def _counted(self, operation: Any) -> Any:
        def counted(*args: object, **kwargs: object) -> Any:
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
            return operation(*args, **kwargs)

        return counted


@pytest.mark.parametrize("stop", ["kill", "power cut"])
@pytest.mark.parametrize("offset", [50, 100, 105, 130, 300])
def test_whoever_begins_anew_has_its_own_log_and_producers_or_the_leaders_and_no_mixture(
    make_bench: Any, offset: int, stop: str
) -> None:
    found = set()
    for step, seed in [(step, seed) for step in range(40) for seed in range(5 if stop == "power cut" else 1)]:
        disk = SimulatedDisk()
        stopping = StopsAt(MountedDisk(disk, Machine()))
        stopping.make_directory("/data")
        bench: Bench = make_bench(Path("/data"), disk=stopping)
        log = bench.open(SMALL)
        bench.append(log, producer=(5, 0, 0))
        handed_on = log.producers.before(1)
        log.truncate_fully_and_start_at(100)
        for number in range(30):
            bench.append(log, producer=(7, 0, number))
        log.flush()
        stopping.left = step
        try:
            log.truncate_fully_and_start_at(offset, handed_on)
        except KeyboardInterrupt:
            pass
        else:
            found.add("done")
        if stop == "power cut":
            disk.cut_power(random.Random(seed))
        bench.disk = MountedDisk(disk, Machine("next"))
        again = bench.open(SMALL, recovery_point=0, same_boot=stop == "kill")
        assert again.corruption is None
        known = set(again.producers.producers)
        if again.log_end_offset == offset == again.log_start_offset and 7 not in known:
            assert known == {5}
            found.add("the leader's")
        elif again.log_end_offset > again.log_start_offset >= 100:
            assert known == {7}
            found.add("its own")
        elif again.log_end_offset:
            assert again.log_start_offset == again.log_end_offset == 100, "all of its own was cut away"
            assert known <= {7}
    assert {"done", "the leader's", "its own"} <= found


@pytest.mark.bug("B42")
@pytest.mark.parametrize("stop", ["kill", "power cut"])
def test_a_log_that_began_anew_knows_earlier_producers_after_any_end_of_the_process(
    make_bench: Any, stop: str
) -> None:
    for bench, cut_power in benches_on_a_disk(make_bench):
        log = bench.open(SMALL)
        for number in range(30):
            bench.append(log, producer=(7, 0, number))
        handed_on = log.producers.before(30)
        log.truncate_fully_and_start_at(40, handed_on)
        bench.append(log, producer=(8, 0, 0))
        if stop == "power cut":
            cut_power()
        found = bench.open(SMALL, recovery_point=log.recovery_point, same_boot=stop == "kill")
        if found.log_start_offset == 40:
            assert found.producers.producers[7] == handed_on.producers[7]
        else:
            assert (stop, found.log_start_offset) == ("power cut", 0), "its leader is asked once more"


@pytest.mark.bug("B71")
@pytest.mark.parametrize("damage", ["missing", "cut short"])
def test_an_index_that_a_read_made_anew_is_right_after_a_power_cut_or_made_anew_once_more(
    make_bench: Any, damage: str
) -> None:
    for bench, cut_power in benches_on_a_disk(make_bench):
        log = bench.open(SMALL)
        for number in range(70):
            bench.append(log, timestamp=1_000 + number)
        log.flush()
        first = log.segments[0]
        wanted = first.greatest_timestamp()
        assert wanted == (1_009, 9)
        first.cool()
        for path in first.index_paths():
            bench.disk.remove(path)
            if damage == "cut short":
                bench.disk.write_atomically(path, b"abc")
        bench.disk.sync_directory(log.directory)
        for offset in range(0, 60, 10):
            assert log.read(offset, 1_000, 70, at_least_one_batch=True)
        assert bench.disk.size(first.index_paths()[1]) > 3, "a segment that is read no more is let go of"
        cut_power()
        found = bench.open(SMALL, recovery_point=70, same_boot=False)
        assert found.segments[0].greatest_timestamp() == wanted
        late = found.segments[0].headers_from_time(1_008)
        assert [one.base_offset for _, one in late if one.max_timestamp_ms >= 1_008] == [8, 9]


@pytest.mark.bug("B70", "records", "Truncated segments reappear after newer ones.")
@pytest.mark.parametrize("later", [4, 2], ids=["a later epoch", "an earlier epoch"])
@pytest.mark.parametrize("way", ["cut", "begin anew"])
def test_no_segment_of_before_a_cut_comes_back_behind_what_was_appended_after_it(
    make_bench: Any, way: str, later: int
) -> None:
    """Where it is of a later epoch than what is before it, a start could not tell."""
    ends = set()
    for seed in range(60):
        disk = SimulatedDisk()
        mounted = MountedDisk(disk, Machine())
        mounted.make_directory("/data")
        bench: Bench = make_bench(Path("/data"), disk=mounted)
        log = bench.open(SMALL)
        for offset in range(30):
            bench.append(log, epoch=1 if offset < 5 else 3)
        log.flush()
        if way == "cut":
            log.truncate_to(5)
        else:
            log.truncate_fully_and_start_at(5)
        for _ in range(5):
            bench.append(log, epoch=later)
        disk.cut_power(random.Random(seed))
        bench.disk = MountedDisk(disk, Machine("next"))
        found = bench.open(SMALL, recovery_point=log.recovery_point, same_boot=False)
        assert found.corruption is None
        assert all(header.leader_epoch == later for header in bench.headers(found) if header.base_offset >= 5)
        ends.add(found.log_end_offset)
    assert len(ends) > 1


@pytest.mark.bug("B36", "records", "Truncated records reappear after records that replaced them.")
@pytest.mark.parametrize("later", [4, 2], ids=["a later epoch", "an earlier epoch"])
@pytest.mark.parametrize("way", ["cut", "recovery cuts"])
def test_nothing_of_before_a_cut_comes_back_behind_what_was_appended_after_it(
    make_bench: Any, way: str, later: int
) -> None:
    """Batches of one size: what a page held before fits behind what was written after. Where it is of a later
    epoch than what is before it, nothing could tell."""
    ends = set()
    for bench, cut_power in benches_on_a_disk(make_bench):
        log = bench.open(LogConfig(segment_bytes=100_000))
        for offset in range(120):
            bench.append(log, epoch=1 if offset < 5 else 3)
        if way == "cut":
            log.truncate_to(5)
        else:
            bench.disk.open(f"{log.directory}/{0:020d}.log").truncate(5 * 100 + 40)
            log = bench.open(LogConfig(segment_bytes=100_000), same_boot=False)
            assert log.log_end_offset == 5
        for _ in range(90):
            bench.append(log, epoch=later)
        cut_power()
        found = bench.open(LogConfig(segment_bytes=100_000), same_boot=False)
        assert found.corruption is None
        assert all(header.leader_epoch == later for header in bench.headers(found) if header.base_offset >= 5)
        ends.add(found.log_end_offset)
    assert len(ends) > 2
