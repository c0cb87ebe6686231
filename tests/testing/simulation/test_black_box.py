"""Clients alone notice bugs: with every look into brokers switched off, by what they saw of the cluster."""

import itertools

import pytest

from sparklog.testing.histories.check import RULES
from sparklog.testing.histories.model import Send
from sparklog.testing.simulation.mutants import find_mutant
from sparklog.testing.simulation.plan import draw_plan
from sparklog.testing.simulation.simulation import simulate

SEEDS_MAX = 40
NOTICED = ("ack-on-append",)
NOTICED_LATER = (
    "truncate-to-high-watermark",
    "producers-are-forgotten",
    "read-beyond-high-watermark",
    "reads-sealed-segments-whole",
)


def notice(name):
    """The first seed at which clients see the bug; without it they see nothing in the same seed."""
    mutant = find_mutant(name)
    for seed in range(1, SEEDS_MAX + 1):
        plan = draw_plan(seed, hunt=mutant.hunt)
        violation = simulate(plan, mutant=mutant, for_clients_only=True).violation
        if violation is not None:
            assert violation.invariant in {rule.name for rule in RULES}
            assert simulate(plan, for_clients_only=True).violation is None
            return
    raise AssertionError(f"no client sees {name} within {SEEDS_MAX} seeds")


@pytest.mark.parametrize("name", NOTICED)
def test_clients_notice_a_historical_bug_by_themselves(name):
    notice(name)


@pytest.mark.chaos
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", NOTICED_LATER)
def test_clients_notice_more_bugs_where_there_is_time(name):
    notice(name)


@pytest.fixture
def after_a_send(monkeypatch):
    """Ends a run at once with whatever history is handed to the judge."""
    seen = []

    def keep(history, limits):
        seen.append(history)
        raise KeyboardInterrupt

    monkeypatch.setattr("sparklog.testing.simulation.black_box.check", keep)
    return seen


def test_the_judge_is_given_every_send_and_a_final_read_of_every_partition(after_a_send):
    plans = (draw_plan(seed, without_faults=True) for seed in itertools.count(1))
    with pytest.raises(KeyboardInterrupt):
        simulate(next(plan for plan in plans if not plan.topic_configs))
    (history,) = after_a_send
    acknowledged = [send for send in history.sends if send.is_ok and send.acks]
    assert acknowledged
    assert all(isinstance(send, Send) and 0 <= send.invoked_ns <= send.done_ns for send in acknowledged)
    read = {(final.topic, final.partition, value) for final in history.finals for _, value in final.records}
    assert {(send.topic, send.partition, send.value) for send in acknowledged} <= read
