"""Topics with a remote store in whole runs: calm ones, troubled ones, and what of a store is drawn."""

from dataclasses import replace

import pytest

from simulation.plans.faults import STORE, STORE_KINDS, Fault
from simulation.plans.operations import UNCLEAN_KINDS
from simulation.plans.plan import FAULTS_BEGIN_MS, draw_plan
from simulation.plans.tier import TROUBLED, WITH_TIER, draw_tier
from simulation.run import simulate

SEEDS = [
    seed
    for seed in range(1, 100)
    if draw_plan(seed).tier and not draw_plan(seed).transactions and not draw_plan(seed).writes
]


def calm(seed, **changes):
    """The plan of a seed that nothing happens to, whose head has small pages."""
    plan = draw_plan(seed, without_faults=True)
    return replace(plan, tier=replace(plan.tier, tail_max=2, **changes))


def troubled(seed, *kinds, amount=0.5):
    """The store alone has these troubles, all the time."""
    plan = calm(seed)
    begin_ms, span_ms = FAULTS_BEGIN_MS, plan.faults_end_ms - FAULTS_BEGIN_MS
    faults = [Fault(at, begin_ms, kind, STORE, "", span_ms, amount) for at, kind in enumerate(kinds)]
    return replace(plan, faults=tuple(faults))


@pytest.mark.parametrize("seed", SEEDS[2:4])
def test_what_is_sealed_is_copied_leaves_the_disks_and_is_read_from_the_store(seed):
    outcome = simulate(calm(seed))
    assert outcome.violation is None
    assert outcome.marks["a segment was copied"] > 5
    assert outcome.marks["a head has a page"]
    assert outcome.marks["segments left a disk"]
    assert outcome.marks["a consumer was given what only a store had"]


@pytest.mark.parametrize(
    ("kinds", "amount"),
    [
        pytest.param(("lose the store",), 0.0, id="it is away"),
        pytest.param(("fail calls of the store",), 0.5, id="calls fail"),
        pytest.param(("slow the store",), 400.0, id="it is slow"),
        pytest.param(("list the store late",), 2_000.0, id="listings are old"),
    ],
)
def test_a_store_with_troubles_loses_nothing_and_keeps_nothing_that_it_should_not(kinds, amount):
    outcome = simulate(troubled(SEEDS[0], *kinds, amount=amount))
    assert outcome.violation is None
    assert outcome.marks["a segment was copied"] > 5


def test_a_seed_with_a_store_is_the_same_run_twice():
    plan = draw_plan(SEEDS[1])
    first, second = simulate(plan, is_told=True), simulate(plan, is_told=True)
    assert first.violation is None
    assert first.digest == second.digest


def test_some_seeds_have_a_store_that_mostly_has_troubles_and_maybe_unclean_elections():
    plans = [draw_plan(seed) for seed in range(1, 1_001)]
    having = [plan for plan in plans if plan.tier]
    drawn = [seed for seed in range(1, 1_001) if draw_tier(seed)]
    assert 0.8 * WITH_TIER < len(drawn) / len(plans) < 1.2 * WITH_TIER
    assert not any(plan.is_compacted for plan in having)
    troubles = [[one for one in plan.faults if one.kind in STORE_KINDS] for plan in having]
    assert 0.8 * TROUBLED < sum(map(bool, troubles)) / len(having) < 1.2 * TROUBLED
    assert {one.kind for some in troubles for one in some} == set(STORE_KINDS)
    assert {one.kind for plan in having for one in plan.operations}.issuperset(UNCLEAN_KINDS)
