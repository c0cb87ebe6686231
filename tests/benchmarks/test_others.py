"""Whether the machine is quiet enough for figures that count."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench.machine import TICKS
from bench.others import (
    LOOK_S,
    WAIT_MAX_S,
    Reading,
    busy_s_in,
    is_busy,
    others_cores,
    reading,
    wait_until_quiet,
)


class Machine:
    """One whose others use so many cores in each look, the last for ever; the clock moves as one sleeps."""

    def __init__(self, *cores: float) -> None:
        self._cores: Iterator[float] = iter(cores)
        self._last = cores[-1]
        self._at_s = self._busy_s = 0.0
        self.said: list[str] = []

    def read(self) -> Reading:
        return Reading(self._at_s, self._busy_s, {})

    def sleep(self, seconds: float) -> None:
        self._at_s += seconds
        self._busy_s += seconds * next(self._cores, self._last)

    def wait(self) -> float:
        return wait_until_quiet(self.read, self.sleep, self.said.append)

    @property
    def waited_s(self) -> float:
        return self._at_s


def test_busy_time_is_all_but_idle_and_waiting_for_disks() -> None:
    ticks = "100 20 30 9000 700 4 5 6 77 8"
    assert busy_s_in(f"cpu  {ticks}\ncpu0 {ticks}\nintr 1 2 3\n") == pytest.approx(165 / TICKS)


@pytest.mark.parametrize("text", ["", "cpu 1 2 3\n", "intr 1 2 3 4 5 6 7 8 9\n"])
def test_what_is_no_proc_stat_is_refused_with_its_begin(text: str) -> None:
    with pytest.raises(ValueError, match="/proc/stat begins with"):
        busy_s_in(text)


def test_others_use_what_the_machine_does_less_the_benchmarks_own() -> None:
    before = Reading(100.0, 500.0, {1: 7.0, 2: 1.0})
    after = Reading(110.0, 515.0, {1: 12.0, 3: 4.0})  # 2 has ended, 3 is new
    assert others_cores(before, after) == pytest.approx(0.6)


def test_own_time_in_coarser_ticks_makes_no_less_than_none() -> None:
    assert others_cores(Reading(0, 10, {1: 0}), Reading(10, 11, {1: 1.02})) == 0


def test_a_quiet_machine_is_looked_at_once() -> None:
    machine = Machine(0.1)
    assert machine.wait() == pytest.approx(0.1)
    assert machine.waited_s == LOOK_S
    assert machine.said == []


def test_a_part_waits_until_others_have_ended() -> None:
    machine = Machine(1.5, 0.9, 0.2)
    assert not is_busy(machine.wait())
    assert machine.waited_s == 3 * LOOK_S
    assert machine.said[0] == "others use 1.50 cores, more than 0.3: waiting 590 s at most"


def test_after_ten_minutes_a_part_waits_no_longer_and_is_busy() -> None:
    machine = Machine(1.5)
    assert is_busy(machine.wait())
    assert machine.waited_s == WAIT_MAX_S


@pytest.mark.parametrize(("cores", "busy"), [(0.0, False), (0.3, False), (0.31, True)])
def test_more_than_three_tenths_of_a_core_is_busy(cores: float, busy: bool) -> None:
    assert is_busy(cores) is busy


def test_a_reading_has_the_time_of_this_process() -> None:
    def spend(seconds: float, clock: Callable[[], os.times_result] = os.times) -> None:
        until = clock().user + seconds
        while clock().user < until:
            pass

    before = reading()
    spend(0.2)
    after = reading()
    assert after.own_s[os.getpid()] - before.own_s[os.getpid()] >= 0.15
    assert after.busy_s - before.busy_s >= 0.1
