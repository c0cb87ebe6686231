"""A hundred tabs ask the cluster no more often than one."""

import threading

import pytest

from sparklog.model.time import MonotonicMs, WallMs
from sparklog.web.shared_answers import KEPT_MAX, SharedAnswers


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0

    def monotonic_ms(self) -> MonotonicMs:
        return MonotonicMs(self.now_ms)

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)


def test_an_answer_is_shared_until_it_is_old() -> None:
    clock, made = Clock(), iter(range(10))
    shared = SharedAnswers(clock)
    assert [shared.get("a", 100, lambda: next(made)) for _ in range(3)] == [0, 0, 0]
    clock.now_ms = 100
    assert shared.get("a", 100, lambda: next(made)) == 0
    clock.now_ms = 101
    assert shared.get("a", 100, lambda: next(made)) == 1


def test_an_answer_that_is_much_work_is_kept_for_ten_times_as_long_as_it_took() -> None:
    clock, made, worked_s = Clock(), iter(range(10)), iter([0.0, 1.0, 1.0, 1.01, 1.01, 1.01])
    shared = SharedAnswers(clock, lambda: next(worked_s))
    answers = []
    for now_ms in (0, 10_000, 10_001, 10_101, 10_102):
        clock.now_ms = now_ms
        answers.append(shared.get("a", 100, lambda: next(made)))
    assert answers == [0, 0, 1, 1, 2]


def test_those_who_ask_at_once_wait_for_one_answer() -> None:
    shared = SharedAnswers(Clock())
    is_asking, may_answer = threading.Event(), threading.Event()
    calls, answers = [], []

    def make() -> str:
        calls.append(1)
        is_asking.set()
        assert may_answer.wait(10)
        return "the answer"

    def ask() -> None:
        answers.append(shared.get("a", 100, make))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    threads[0].start()
    assert is_asking.wait(10)
    for thread in threads[1:]:
        thread.start()
    may_answer.set()
    for thread in threads:
        thread.join(10)
    assert (len(calls), answers) == (1, ["the answer"] * 8)


def test_a_failure_is_not_kept() -> None:
    shared = SharedAnswers(Clock())

    def fail() -> str:
        raise OSError("silent")

    with pytest.raises(OSError, match="silent"):
        shared.get("a", 100, fail)
    assert shared.get("a", 100, lambda: "now") == "now"


def test_the_answers_that_nobody_asks_for_any_more_go() -> None:
    shared = SharedAnswers(Clock())
    shared.get("first", 100, lambda: 1)
    for number in range(KEPT_MAX):
        shared.get(number, 100, lambda: 0)
    assert shared.get("first", 100, lambda: 2) == 2
    assert shared.get(KEPT_MAX - 1, 100, lambda: 9) == 0
