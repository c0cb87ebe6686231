"""Members that stall wake up again, and those whose twin has taken over end."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from chaos.clients.disturbances import END_S, LEAVE, STALL, STALL_S, TWIN, Disturbances


class _Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return _Clock()


@pytest.fixture
def process():
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    yield child
    child.kill()
    child.wait()


def _state(process):
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


def _comes_to(process, is_stopped):
    deadline = time.monotonic() + 10
    while (_state(process) == "T") != is_stopped and time.monotonic() < deadline:
        time.sleep(0.005)
    return (_state(process) == "T") == is_stopped


class _Loaded(Random):
    """Dice that choose one thing."""

    def __init__(self, what):
        super().__init__(1)
        self._what = what

    def choice(self, among):
        assert self._what in among
        return self._what


def test_a_member_that_stalls_wakes_up_after_a_while(clock, process):
    disturbances = Disturbances(_Loaded(STALL), clock)
    assert disturbances.begin(process, has_twin=False) == STALL
    assert _comes_to(process, is_stopped=True)
    disturbances.go_on()
    assert _comes_to(process, is_stopped=True)
    clock.now += STALL_S[1] + 1
    disturbances.go_on()
    assert _comes_to(process, is_stopped=False)


def test_when_all_is_over_everybody_wakes_up_at_once(clock, process):
    disturbances = Disturbances(_Loaded(STALL), clock)
    disturbances.begin(process, has_twin=True)
    disturbances.go_on(is_over=True)
    assert _comes_to(process, is_stopped=False)


def test_a_member_that_leaves_is_told_to_end(clock, process):
    disturbances = Disturbances(_Loaded(LEAVE), clock)
    assert disturbances.begin(process, has_twin=True) == LEAVE
    assert process.wait(10) == -15


def test_a_member_that_does_not_leave_in_time_is_killed(clock, process):
    process.send_signal(signal.SIGSTOP)
    assert _comes_to(process, is_stopped=True)
    disturbances = Disturbances(_Loaded(LEAVE), clock)
    disturbances.begin(process, has_twin=True)
    disturbances.go_on()
    assert process.poll() is None
    clock.now += END_S + 1
    disturbances.go_on()
    assert process.poll() == -9


def test_a_member_whose_twin_has_taken_over_wakes_up_and_ends_in_time(clock, process):
    disturbances = Disturbances(_Loaded(TWIN), clock)
    assert disturbances.begin(process, has_twin=True) == TWIN
    clock.now += STALL_S[1] + 1
    disturbances.go_on()
    assert _comes_to(process, is_stopped=False)
    assert process.poll() is None
    clock.now += END_S
    disturbances.go_on()
    assert process.poll() == -9


def test_the_next_disturbance_comes_a_while_after_the_last(clock, process):
    disturbances = Disturbances(Random(1), clock)
    assert not disturbances.is_due()
    clock.now += 60
    assert disturbances.is_due()
    disturbances.begin(process, has_twin=False)
    assert not disturbances.is_due()
    disturbances.go_on(is_over=True)
