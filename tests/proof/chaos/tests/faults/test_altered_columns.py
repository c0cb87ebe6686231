"""Columns change until the fault is taken away; only a mistake of the harness ends that early."""

import threading
from random import Random
from types import SimpleNamespace

import pytest

from chaos.access import Access
from chaos.faults import altered_columns as module
from chaos.faults.altered_columns import AlterColumns
from sparklog.model.errors import SparklogError

CLUSTER = SimpleNamespace(access=Access("127.0.0.1:1"))


class Changes:
    """Answers one change after the other, and is ``done`` with them."""

    def __init__(self, *answers):
        self._answers = iter(answers)
        self.done = threading.Event()

    def __call__(self, cluster, rng):
        answer = next(self._answers, None)
        if answer is None:
            self.done.set()
            return "version 9: drop-column c7"
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def changes(monkeypatch):
    def make(*answers):
        made = Changes(*answers)
        monkeypatch.setattr(module, "change_columns", made)
        monkeypatch.setattr(module, "EVERY_S", (0.0, 0.01))
        return made

    return make


def test_changes_that_are_refused_are_followed_by_others(changes):
    made = changes("version 2: drop-column c2", SparklogError("overtaken"), OSError("nobody answers"))
    nemesis = AlterColumns()
    assert nemesis.begin(CLUSTER, Random(1)) == "version 2: drop-column c2, and so on"
    assert made.done.wait(30)
    nemesis.end()
    nemesis.end()


def test_a_first_change_that_is_refused_is_a_miss(changes):
    changes(SparklogError("nobody answers"))
    nemesis = AlterColumns()
    with pytest.raises(SparklogError):
        nemesis.begin(CLUSTER, Random(1))
    nemesis.end()


def test_a_mistake_of_the_harness_is_told_by_the_next_strike(changes):
    changes("version 2: drop-column c2", KeyError("typed"))
    nemesis = AlterColumns()
    nemesis.begin(CLUSTER, Random(1))
    nemesis._thread.join(30)
    nemesis.end()
    with pytest.raises(AssertionError, match="KeyError"):
        nemesis.begin(CLUSTER, Random(1))
