import logging
import threading

import pytest

from sparklog.network.executor import ThreadExecutor


def test_work_runs_on_named_threads_side_by_side():
    both_there, names = threading.Barrier(2, timeout=60), []
    with ThreadExecutor("fsync", threads=2) as executor:
        for _ in range(2):
            executor.submit(lambda: (both_there.wait(), names.append(threading.current_thread().name)))
    assert sorted(names) == ["fsync-0", "fsync-1"]


def test_stop_finishes_what_was_submitted_and_refuses_what_comes_later():
    ran = []
    executor = ThreadExecutor("recovery")
    for number in range(100):
        executor.submit(lambda number=number: ran.append(number))
    executor.stop()
    executor.stop()
    assert ran == list(range(100))
    with pytest.raises(RuntimeError, match="'recovery' is stopped"):
        executor.submit(lambda: None)


def test_work_that_fails_is_logged_and_costs_no_thread(caplog):
    done = threading.Event()
    with caplog.at_level(logging.ERROR), ThreadExecutor("peers") as executor:
        executor.submit(lambda: 1 / 0)
        executor.submit(done.set)
        assert done.wait(10)
    assert "ZeroDivisionError" in caplog.text


def test_an_executor_can_be_stopped_by_its_own_work():
    executor, done = ThreadExecutor("suicidal"), threading.Event()
    executor.submit(lambda: (executor.stop(), done.set()))
    assert done.wait(10)
