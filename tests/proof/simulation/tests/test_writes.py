"""Atomic writes in whole runs: calm ones, troubled ones, and what is checked of their coordinators."""

from dataclasses import replace

import pytest

from simulation.clients.transactions.script import Wait
from simulation.clients.writes.driver import Driver
from simulation.invariants.coordinators import CoordinatorsAreAReplay
from simulation.plans.plan import draw_plan
from simulation.plans.writes import ALL_WRITE_CHURN, WITH_WRITES, app_id, draw_writes
from simulation.run import simulate
from sparklog.core.write_coordinator.write_machine import WriteMachine

SEEDS = [seed for seed in range(1, 60) if draw_plan(seed).writes and not draw_plan(seed).transactions]
CALM = {"timeout_ms": 8_000, "abort_share": 0.0, "fail_share": 0.0, "die_share": 0.0, "stall_share": 0.0}


def calm(seed, **changes):
    """The plan of a seed with one app, which is changed; and nothing goes wrong."""
    plan = draw_plan(seed, without_faults=True)
    return replace(plan, writes=(replace(plan.writes[0], **{**CALM, **changes}),))


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_writes_that_nothing_happens_to_break_no_rule_and_come_to_rest(seed):
    outcome = simulate(calm(seed))
    assert outcome.violation is None
    assert outcome.marks["an atomic write was committed"]


def test_a_task_that_runs_twice_counts_once_and_so_does_one_whose_message_was_lost():
    outcome = simulate(calm(SEEDS[0], twin_share=0.5, lose_share=0.5, tasks_max=3, interval_ms=20.0))
    assert outcome.violation is None
    assert outcome.marks["a task was run twice at a time"]
    assert outcome.marks["a task's message was lost"]
    assert outcome.marks["a reader passed over an aborted transaction"]


def test_a_driver_that_dies_or_is_replaced_leaves_its_write_to_the_next_run():
    outcome = simulate(
        calm(SEEDS[0], churn=("die", "replace"), churn_ms=150.0, interval_ms=20.0, tasks_max=3)
    )
    assert outcome.violation is None
    assert outcome.marks["a driver died in a write"]
    assert outcome.marks["a driver was replaced in a write"]


def test_a_write_whose_driver_stands_still_for_too_long_is_aborted_and_written_again():
    changes = {"churn": ("stall",), "churn_ms": 200.0, "interval_ms": 20.0, "timeout_ms": 600}
    outcome = simulate(calm(SEEDS[0], tasks_max=3, linger_ms=60.0, **changes))
    assert outcome.violation is None
    assert outcome.marks["a write was aborted for its silence"]
    assert outcome.marks["a commit of a write was refused"]


def test_a_driver_that_never_ends_its_write_keeps_a_cluster_from_rest(monkeypatch):
    def commit(self, version, winners):
        while True:
            yield Wait(100)

    monkeypatch.setattr(Driver, "_commit", commit)
    violation = simulate(calm(SEEDS[0])).violation
    assert violation.invariant == "ComesToRest"
    assert "has committed nothing since all was mended" in violation.what


def test_a_coordinator_that_applies_something_else_than_its_log_is_found(monkeypatch):
    monkeypatch.setattr(WriteMachine, "replay", lambda self, record: None)
    violations = [simulate(draw_plan(seed)).violation for seed in SEEDS[:3]]
    assert CoordinatorsAreAReplay.__name__ in {one.invariant for one in violations if one is not None}


def test_a_seed_with_writes_is_the_same_run_twice():
    plan = draw_plan(SEEDS[1])
    first, second = simulate(plan, is_told=True), simulate(plan, is_told=True)
    assert first.violation is None
    assert first.digest == second.digest


def test_some_seeds_have_writes_and_links_to_their_tasks_and_drivers_fail():
    plans = [draw_plan(seed) for seed in range(1, 501)]
    having = [plan for plan in plans if plan.writes]
    drawn = [seed for seed in range(1, 501) if draw_writes(seed)]
    assert 0.8 * WITH_WRITES < len(drawn) / len(plans) < 1.2 * WITH_WRITES
    assert app_id(0) in {end for plan in having for one in plan.faults for end in (one.target, one.other)}
    churn = {kind for plan in having for one in plan.writes for kind in one.churn}
    assert churn == set(ALL_WRITE_CHURN)
