"""Threads of a simulated broker: one runs at a time, when the schedule says so, and ends with its process."""

import threading

import pytest

from simulation.machines.blocking_work import ControllerCalls, StrandLock, Strands
from simulation.schedule import Escaped, Process, ProcessDied, Schedule
from sparklog.broker.life.server import CONTROLLER_CALLS_MAX


@pytest.fixture
def strands():
    strands = Strands(Process(Schedule(), "broker-1#1"))
    yield strands
    strands.end()


def run(strands):
    strands.process.schedule.run_until(strands.process.schedule.now_us + 1)


def test_while_one_waits_others_go_on(strands):
    told, wakes = [], []

    def waits():
        told.append(strands.wait(wakes.append))

    strands.submit(waits)
    strands.submit(lambda: told.append("another"))
    run(strands)
    assert told == ["another"]
    wakes[0]("the answer")
    assert told == ["another", "the answer"]


def test_what_it_raises_is_raised_by_who_let_it_run(strands):
    def fails():
        raise ValueError("a bug")

    strands.submit(fails)
    with pytest.raises(Escaped, match="ValueError: a bug"):
        run(strands)


def test_it_hears_its_first_answer_only(strands):
    told, wakes = [], []
    strands.submit(lambda: told.append(strands.wait(wakes.append)))
    run(strands)
    wakes[0](1)
    wakes[0](2)
    assert told == [1]


def test_it_ends_with_its_process(strands):
    before, told = threading.active_count(), []

    def waits():
        try:
            strands.wait(lambda wake: None)
        except ProcessDied:
            told.append("died")
            raise

    strands.submit(waits)
    run(strands)
    assert threading.active_count() == before + 1
    strands.end()
    assert (told, threading.active_count()) == (["died"], before)


def test_no_more_run_at_once_than_a_broker_has_threads_for_it(strands):
    begun, wakes = [], []

    def waits():
        begun.append(1)
        strands.wait(wakes.append)

    for _ in range(CONTROLLER_CALLS_MAX + 1):
        strands.submit(waits)
    run(strands)
    assert len(begun) == CONTROLLER_CALLS_MAX
    wakes[0](None)
    run(strands)
    assert len(begun) == CONTROLLER_CALLS_MAX + 1


def test_a_lock_is_handed_on_in_order(strands):
    lock, told, wakes = StrandLock(strands), [], []

    def holds(name):
        with lock:
            told.append(name)
            strands.wait(wakes.append)

    for name in "abc":
        strands.submit(lambda name=name: holds(name))
    for _ in "abc":
        run(strands)
        wakes[-1](None)
    run(strands)
    assert told == ["a", "b", "c"]


class Link:
    """Remembers what it is asked, and how to answer."""

    def __init__(self):
        self.asked = []

    def call(self, message, *, timeout_ms, on_response, on_failure):
        self.asked.append((on_response, on_failure))


def test_a_strand_that_asks_the_controller_waits_for_the_answer(strands):
    link, told = Link(), []
    calls = ControllerCalls(strands, link)
    strands.submit(lambda: told.append(calls.call("?", timeout_ms=1_000)))
    run(strands)
    assert not told
    link.asked[0][0]("!")
    assert told == ["!"]


def test_a_failure_is_raised_where_the_controller_was_asked(strands):
    link, told = Link(), []
    calls = ControllerCalls(strands, link)

    def asks():
        try:
            calls.call("?", timeout_ms=1_000)
        except ConnectionError as error:
            told.append(str(error))

    strands.submit(asks)
    run(strands)
    link.asked[0][1](ConnectionError("gone"))
    assert told == ["gone"]
