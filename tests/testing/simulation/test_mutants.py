"""Historical bugs, switched back on: each must be caught, and nothing of it may stay behind."""

import pytest

from sparklog.testing.simulation.mutants import MUTANTS, find_mutant
from sparklog.testing.simulation.plan import draw_plan
from sparklog.testing.simulation.shrink import minimize, shrink
from sparklog.testing.simulation.simulation import simulate


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_historical_bug_is_caught_within_its_budget_of_seeds(mutant):
    assert 1 <= mutant.caught_at <= mutant.seeds_max
    outcome = simulate(draw_plan(mutant.caught_at), mutant=mutant)
    assert outcome.violation is not None
    assert outcome.violation.invariant != "NothingFails"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_without_the_bug_the_same_seed_breaks_no_rule(mutant):
    simulate(draw_plan(mutant.caught_at), mutant=mutant)
    assert simulate(draw_plan(mutant.caught_at)).violation is None


def test_a_failing_run_is_shrunk_to_faults_that_still_break_the_same_rule():
    mutant = find_mutant("truncate-to-high-watermark")
    failed = simulate(draw_plan(mutant.caught_at), mutant=mutant)
    shrunk = shrink(failed, mutant=mutant)
    assert len(shrunk.plan.faults) < len(failed.plan.faults)
    again = simulate(shrunk.plan, mutant=mutant)
    assert again.violation.invariant == failed.violation.invariant


def test_ddmin_finds_the_two_faults_that_matter_among_many():
    needed = {7, 31}
    assert set(minimize(list(range(40)), lambda faults: needed <= set(faults))) == needed


def test_ddmin_leaves_nothing_where_no_fault_is_needed():
    assert minimize([1, 2, 3], lambda faults: True) == []
