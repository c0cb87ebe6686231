"""Seeds in as many processes as there are CPUs: eight always, more in ``make proof``, as time allows."""

import time

import pytest

from simulation.marks import ALL_MARKS
from simulation.plans.faults import ALL_KINDS
from simulation.plans.operations import ALL_OPERATIONS
from simulation.plans.plan import draw_plan
from simulation.seeds import fleet
from simulation.seeds.fleet import Summary, processes_for, summaries

SEEDS = range(1, 9)
PLANS = range(1, 201)
SEEDS_OF_THE_PROOF = range(9, 1_509)
AT_A_TIME = 50
PROOF_S = 100.0
"""``make proof`` runs as many of its seeds as begin within so many seconds."""


def ran(seeds: range) -> tuple[Summary, ...]:
    """What became of the seeds: none broke a rule."""
    found = tuple(summaries(seeds, processes=processes_for(len(seeds))))
    assert [one for one in found if one.invariant is not None] == []
    assert [one.seed for one in found] == list(seeds)
    return found


@pytest.mark.scenario("S9", "Links fail and processes pause: after the repair all sends arrive and are read.")
@pytest.mark.scenario("S11")
@pytest.mark.timeout(900)
def test_troubled_clusters_break_no_rule_and_come_to_rest_once_they_are_mended():
    found = ran(SEEDS)
    assert sum(one.faults - one.spared for one in found) > 5 * len(SEEDS)
    assert sum(one.operations for one in found) > 3 * len(SEEDS)
    assert sum(one.accepted for one in found) > len(SEEDS)
    assert sum(one.acknowledged for one in found) > 50 * len(SEEDS)


@pytest.mark.proof
@pytest.mark.timeout(1_800)
def test_the_seeds_of_the_proof_break_no_rule_and_reach_every_situation_that_matters(capsys):
    """On a slow machine fewer seeds run, which reach fewer situations: then only the rules are judged."""
    began = time.monotonic()
    found: list[Summary] = []
    for first in SEEDS_OF_THE_PROOF[::AT_A_TIME]:
        if time.monotonic() - began > PROOF_S:
            break
        found += ran(range(first, first + AT_A_TIME))
    seconds = time.monotonic() - began
    with capsys.disabled():
        print(f"\n{len(found)} seeds, 0 violations, {len(found) / seconds:.1f} seeds/s")
    if len(found) == len(SEEDS_OF_THE_PROOF):
        assert set(ALL_MARKS) - {mark for one in found for mark in one.marks} == set()


@pytest.mark.scenario("S9")
def test_two_hundred_plans_have_every_kind_of_fault_and_of_operation():
    plans = [draw_plan(seed) for seed in PLANS]
    assert {fault.kind for plan in plans for fault in plan.faults} == set(ALL_KINDS)
    assert {one.kind for plan in plans for one in plan.operations} == set(ALL_OPERATIONS)


@pytest.mark.proof
def test_several_processes_tell_the_same_in_the_same_order(monkeypatch):
    monkeypatch.setattr(fleet, "SEEDS_AT_A_TIME", 2)
    seeds = range(1, 8)
    alone = list(summaries(seeds, steps_max=600))
    assert list(summaries(seeds, steps_max=600, processes=3)) == alone
