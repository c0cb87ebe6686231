"""Loops driven by threads: each question gets its outcome, and nothing ends a loop but its end."""

import threading

import pytest

from sparklog.model.cluster_facts import Node
from sparklog.model.ids import BrokerId
from sparklog.model.loops import Await, CallBroker, Changes, Pause, Signal
from sparklog.network.loop_threads import LoopDriver, LoopThreads

WAIT_S = 60
NODE = Node(BrokerId(1), "nowhere", 1)


@pytest.fixture
def ended():
    return threading.Event()


def run(loop, ask=lambda call: None):
    threads = LoopThreads(ask)
    threads.start("a-loop-under-test", loop)
    return threads


def test_a_call_is_answered_with_its_response_and_a_failed_one_is_thrown_into_the_loop(ended):
    outcomes = []

    def ask(call):
        if call.message == "fail":
            raise ConnectionError("nobody listens")
        return call.message.upper()

    def loop():
        outcomes.append((yield CallBroker(NODE, "hello", 10)))
        try:
            yield CallBroker(NODE, "fail", 10)
        except ConnectionError as error:
            outcomes.append(str(error))
        yield Pause(1)
        ended.set()

    threads = run(loop, ask)
    assert ended.wait(WAIT_S)
    assert outcomes == ["HELLO", "nobody listens"]
    threads.close(WAIT_S)


def test_a_signal_ends_a_wait_also_if_it_was_given_before_the_question(ended):
    early, late, never, outcomes = Signal(), Signal(), Signal(), []
    early.give()

    def loop():
        outcomes.append((yield Await(early)))
        threading.Timer(0, late.give).start()
        outcomes.append((yield Await(late)))
        outcomes.append((yield Await(never, 1)))
        ended.set()

    threads = run(loop)
    assert ended.wait(WAIT_S)
    assert outcomes == [True, True, False]
    threads.close(WAIT_S)


def test_a_loop_that_fails_begins_anew(ended, monkeypatch):
    monkeypatch.setattr("sparklog.network.loop_threads.ANEW_MS", 1)
    begun = []

    def loop():
        begun.append(len(begun))
        if len(begun) < 3:
            raise KeyError("a bug")
        ended.set()
        yield Pause(0)

    threads = run(loop)
    assert ended.wait(WAIT_S)
    threads.close(WAIT_S)
    assert begun == [0, 1, 2]


def test_a_call_that_ends_in_a_bug_closes_the_loop_before_it_begins_anew(ended, monkeypatch):
    seen = []

    class Driver(LoopDriver):
        def wait(self, signal, timeout_ms):
            seen.append(list(tidied))
            ended.set()
            return super().wait(signal, 0)

    monkeypatch.setattr("sparklog.network.loop_threads.LoopDriver", Driver)
    tidied = []

    def loop():
        try:
            yield CallBroker(NODE, "hello", 10)
        finally:
            tidied.append(True)

    def ask(call):
        raise KeyError("a bug")

    threads = run(loop, ask)
    assert ended.wait(WAIT_S)
    threads.close(WAIT_S)
    assert seen[0] == [True]


def test_closing_ends_every_wait_and_starts_no_further_loop(ended):
    tidied = threading.Event()

    def loop():
        try:
            ended.set()
            yield Await(Signal())
        finally:
            tidied.set()

    threads = run(loop)
    assert ended.wait(WAIT_S)
    threads.close(WAIT_S)
    assert tidied.is_set(), "the loop was closed"
    threads.start("late", lambda: pytest.fail("it was started"))


def test_a_change_gives_the_signals_of_those_who_listen_at_that_time():
    changes = Changes()
    with changes.signalled() as first:
        with changes.signalled() as second:
            changes.happened()
        assert first.take()
        assert second.take()
        changes.happened()
        assert first.take()
        assert not second.take()


def test_no_giving_is_lost_while_a_loop_looks(ended):
    """Every giving comes after its item: a loop that takes the signal, and then looks, sees all items."""
    items, signal, count = [], Signal(), 20_000

    def loop():
        while len(items) < count:
            yield Await(signal)
        ended.set()

    threads = run(loop)
    for number in range(count):
        items.append(number)
        signal.give()
    assert ended.wait(WAIT_S)
    threads.close(WAIT_S)
