"""The seeds of the suite: two thousand clusters, in as many processes as there are CPUs."""

import functools

import pytest

from simulation import fleet
from simulation.fleet import processes_for, summaries
from simulation.marks import ALL_MARKS
from simulation.plans.faults import ALL_KINDS
from simulation.plans.operations import ALL_OPERATIONS
from simulation.plans.plan import draw_plan

SEEDS = range(1, 2_001)
AT_A_TIME = 125

pytestmark = pytest.mark.timeout(1_800)


@functools.cache
def told(first):
    """What became of the seeds from ``first`` on."""
    seeds = range(first, first + AT_A_TIME)
    return tuple(summaries(seeds, processes=processes_for(len(seeds))))


@pytest.fixture(scope="module")
def suite():
    return [one for first in SEEDS[::AT_A_TIME] for one in told(first)]


@pytest.mark.parametrize("first", SEEDS[::AT_A_TIME])
def test_troubled_clusters_break_no_rule_and_come_to_rest_once_they_are_mended(first):
    assert [one for one in told(first) if one.invariant is not None] == []
    assert [one.seed for one in told(first)] == list(range(first, first + AT_A_TIME))


def test_every_situation_that_matters_came_up_in_some_run(suite):
    reached = {mark for one in suite for mark in one.marks}
    assert set(ALL_MARKS) - reached == set()


def test_there_was_trouble_and_work_enough(suite):
    assert sum(one.faults - one.spared for one in suite) > 5 * len(SEEDS)
    assert sum(one.operations for one in suite) > 3 * len(SEEDS)
    assert sum(one.accepted for one in suite) > len(SEEDS)
    assert sum(one.acknowledged for one in suite) > 50 * len(SEEDS)


def test_the_seeds_of_the_suite_have_every_kind_of_fault_and_of_operation():
    plans = [draw_plan(seed) for seed in SEEDS]
    assert {fault.kind for plan in plans for fault in plan.faults} == set(ALL_KINDS)
    assert {one.kind for plan in plans for one in plan.operations} == set(ALL_OPERATIONS)


def test_several_processes_tell_the_same_in_the_same_order(monkeypatch):
    monkeypatch.setattr(fleet, "SEEDS_AT_A_TIME", 2)
    seeds = range(1, 8)
    alone = list(summaries(seeds, steps_max=600))
    assert list(summaries(seeds, steps_max=600, processes=3)) == alone
