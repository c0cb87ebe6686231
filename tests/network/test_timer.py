import logging
import threading
import time
from types import SimpleNamespace

import pytest

from sparklog.network import timer as under_test
from sparklog.network.timer import ThreadTimer


@pytest.fixture
def timer(cleanups):
    timer = ThreadTimer("test-timer")
    cleanups.actions.append(timer.stop)
    return timer


def test_actions_run_in_the_order_of_their_deadlines(timer):
    ran, done = [], threading.Event()
    timer.after(60, lambda: (ran.append("last"), done.set()))
    timer.after(30, lambda: ran.append("second"))
    timer.after(0, lambda: ran.append("first"))
    assert done.wait(10)
    assert ran == ["first", "second", "last"]


def test_equal_deadlines_run_in_the_order_they_were_set(timer, monkeypatch):
    now = time.monotonic()
    monkeypatch.setattr(under_test, "time", SimpleNamespace(monotonic=lambda: now))
    ran, done = [], threading.Event()
    for number in range(20):
        timer.after(0, lambda number=number: ran.append(number))
    timer.after(0, done.set)
    assert done.wait(10)
    assert ran == list(range(20))


def test_an_action_does_not_run_before_its_time(timer):
    began, ended, done = time.monotonic(), [], threading.Event()
    timer.after(40, lambda: (ended.append(time.monotonic()), done.set()))
    assert done.wait(10)
    assert ended[0] - began >= 0.04


def test_a_cancelled_action_does_not_run_and_holds_nothing(timer):
    ran, done = [], threading.Event()
    scheduled = timer.after(20, lambda: ran.append("cancelled"))
    scheduled.cancel()
    scheduled.cancel()
    timer.after(40, done.set)
    assert done.wait(10)
    assert ran == []
    assert not scheduled.is_pending


def test_an_action_that_fails_is_logged_and_the_next_one_runs(timer, caplog):
    done = threading.Event()
    with caplog.at_level(logging.ERROR):
        timer.after(0, lambda: 1 / 0)
        timer.after(1, done.set)
        assert done.wait(10)
    assert "ZeroDivisionError" in caplog.text


def test_forgotten_entries_do_not_pile_up(timer):
    for _ in range(10_000):
        timer.after(1_000_000, lambda: None).cancel()
    assert timer.waiting < 2_000


def test_a_stopped_timer_forgets_everything_and_refuses_more():
    timer = ThreadTimer("stopped")
    timer.after(1_000_000, lambda: None)
    timer.stop()
    timer.stop()
    assert timer.waiting == 0
    with pytest.raises(RuntimeError, match="'stopped' is stopped"):
        timer.after(1, lambda: None)


def test_a_timer_can_be_stopped_by_one_of_its_actions():
    timer, done = ThreadTimer("suicidal"), threading.Event()
    timer.after(0, lambda: (timer.stop(), done.set()))
    assert done.wait(10)
