"""Threads of a simulated broker: one runs at a time, when the schedule says so, and ends with its process."""

import threading

import pytest

from simulation.machines.blocking_work import ControllerCalls, WorkThreadLock, WorkThreads
from simulation.schedule import Escaped, Process, ProcessDied, Schedule
from sparklog.broker.life.body import CONTROLLER_CALLS_MAX


@pytest.fixture
def threads():
    threads = WorkThreads(Process(Schedule(), "broker-1#1"))
    yield threads
    threads.end()


def run(threads):
    threads.process.schedule.run_until(threads.process.schedule.now_us + 1)


def test_while_one_waits_others_go_on(threads):
    told, wakes = [], []

    def waits():
        told.append(threads.wait(wakes.append))

    threads.submit(waits)
    threads.submit(lambda: told.append("another"))
    run(threads)
    assert told == ["another"]
    wakes[0]("the answer")
    assert told == ["another", "the answer"]


def test_what_it_raises_is_raised_by_who_let_it_run(threads):
    def fails():
        raise ValueError("a bug")

    threads.submit(fails)
    with pytest.raises(Escaped, match="ValueError: a bug"):
        run(threads)


def test_it_hears_its_first_answer_only(threads):
    told, wakes = [], []
    threads.submit(lambda: told.append(threads.wait(wakes.append)))
    run(threads)
    wakes[0](1)
    wakes[0](2)
    assert told == [1]


def test_it_ends_with_its_process(threads):
    before, told = threading.active_count(), []

    def waits():
        try:
            threads.wait(lambda wake: None)
        except ProcessDied:
            told.append("died")
            raise

    threads.submit(waits)
    run(threads)
    assert threading.active_count() == before + 1
    threads.end()
    assert (told, threading.active_count()) == (["died"], before)


def test_one_that_stands_still_with_its_process_ends_by_that(threads):
    schedule, told = threads.process.schedule, []

    def asks_zookeeper():
        try:
            schedule.block(threads.process, 1_000)
        except ProcessDied:
            told.append("died")
            raise

    def die():
        threads.process.kill()
        threads.end()

    threads.submit(asks_zookeeper)
    schedule.after(500, None, die)
    schedule.run_until(2_000)
    assert told == ["died"]


def test_what_one_of_a_dead_process_breaks_while_it_ends_reaches_nobody(threads):
    def waits():
        try:
            threads.wait(lambda wake: None)
        finally:
            raise AssertionError("a lock is taken twice")

    threads.submit(waits)
    run(threads)
    threads.process.kill()
    threads.end()


def test_one_that_waits_once_more_while_it_ends_does_not_wait(threads):
    before = threading.active_count()

    def waits():
        try:
            threads.wait(lambda wake: None)
        finally:
            threads.wait(lambda wake: None)

    threads.submit(waits)
    run(threads)
    threads.end()
    assert threading.active_count() == before


def test_no_more_run_at_once_than_a_broker_has_threads_for_it(threads):
    begun, wakes = [], []

    def waits():
        begun.append(1)
        threads.wait(wakes.append)

    for _ in range(CONTROLLER_CALLS_MAX + 1):
        threads.submit(waits)
    run(threads)
    assert len(begun) == CONTROLLER_CALLS_MAX
    wakes[0](None)
    run(threads)
    assert len(begun) == CONTROLLER_CALLS_MAX + 1


def test_a_lock_is_handed_on_in_order(threads):
    lock, told, wakes = WorkThreadLock(threads), [], []

    def holds(name):
        with lock:
            told.append(name)
            threads.wait(wakes.append)

    for name in "abc":
        threads.submit(lambda name=name: holds(name))
    for _ in "abc":
        run(threads)
        wakes[-1](None)
    run(threads)
    assert told == ["a", "b", "c"]


class Link:
    """Remembers what it is asked, and how to answer."""

    def __init__(self):
        self.asked = []

    def call(self, message, *, timeout_ms, on_response, on_failure):
        self.asked.append((on_response, on_failure))


def test_a_thread_that_asks_the_controller_waits_for_the_answer(threads):
    link, told = Link(), []
    calls = ControllerCalls(threads, link)
    threads.submit(lambda: told.append(calls.call("?", timeout_ms=1_000)))
    run(threads)
    assert not told
    link.asked[0][0]("!")
    assert told == ["!"]


def test_a_failure_is_raised_where_the_controller_was_asked(threads):
    link, told = Link(), []
    calls = ControllerCalls(threads, link)

    def asks():
        try:
            calls.call("?", timeout_ms=1_000)
        except ConnectionError as error:
            told.append(str(error))

    threads.submit(asks)
    run(threads)
    link.asked[0][1](ConnectionError("gone"))
    assert told == ["gone"]
