"""Historical bugs, switched back on: each must be caught, and nothing of it may stay behind."""

import pytest

from simulation.machines.zookeeper import Ensemble
from simulation.mutants import MUTANTS, find_mutant
from simulation.mutants.mutant import Switch
from simulation.plans.plan import draw_plan
from simulation.run import simulate
from simulation.schedule import Schedule
from simulation.seeds.shrink import minimize, shrink

SAMPLE = [mutant for mutant in MUTANTS if mutant.is_quick]


def first_caught(mutant):
    """The outcome of the first seed that catches it; which one that is changes with every schedule.

    A seed in which the bug makes shipped code fail is passed over: a rule must notice it, within the budget.
    """
    for seed in range(1, mutant.seeds_max + 1):
        outcome = simulate(draw_plan(seed, hunt=mutant.hunt), mutant=mutant)
        if outcome.violation is not None and outcome.violation.invariant != "NothingFails":
            return outcome
    raise AssertionError(f"{mutant.name} is not caught within {mutant.seeds_max} seeds")


def catch(mutant):
    caught = first_caught(mutant)
    assert simulate(caught.plan).violation is None


@pytest.mark.parametrize("mutant", SAMPLE, ids=lambda mutant: mutant.name)
def test_a_historical_bug_is_caught_and_without_it_the_same_seed_breaks_no_rule(mutant):
    catch(mutant)


@pytest.mark.chaos
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_historical_bug_is_caught_within_its_budget(mutant):
    catch(mutant)


def test_every_mutant_can_be_switched_on_and_off():
    for mutant in MUTANTS:
        ensemble = Ensemble(Schedule(), 1, (0.1, 0.2), 1_000)
        wash = ensemble.wash
        undo = []
        mutant.switch_on(Switch(ensemble, undo))
        assert undo or ensemble.wash is not wash, mutant.name
        while undo:
            undo.pop()()


def test_each_area_has_a_mutant_in_every_run_of_the_suite():
    areas = {mutant.switch_on.__module__ for mutant in MUTANTS}
    assert areas == {mutant.switch_on.__module__ for mutant in SAMPLE}


def test_no_two_mutants_have_the_same_name():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_a_failing_run_is_shrunk_to_faults_that_still_break_the_same_rule():
    mutant = find_mutant("truncate-to-high-watermark")
    failed = first_caught(mutant)
    shrunk = shrink(failed, mutant=mutant)
    assert len(shrunk.plan.steps) < len(failed.plan.steps)
    again = simulate(shrunk.plan, mutant=mutant)
    assert again.violation.invariant == failed.violation.invariant


def test_ddmin_finds_the_two_faults_that_matter_among_many():
    needed = {7, 31}
    assert set(minimize(list(range(40)), lambda faults: needed <= set(faults))) == needed


def test_ddmin_leaves_nothing_where_no_fault_is_needed():
    assert minimize([1, 2, 3], lambda faults: True) == []
