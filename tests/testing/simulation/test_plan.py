"""What seeds draw: faults that take a disk's word away need two replicas that have everything."""

from sparklog.testing.simulation.faults import DESTRUCTIVE_KINDS, SWARM_KINDS, Hunt
from sparklog.testing.simulation.operations import MINIMUM_KINDS
from sparklog.testing.simulation.plan import COVERED, draw_plan

PLANS = [draw_plan(seed) for seed in range(1, 1_001)]


def is_destructive(plan):
    return any(fault.kind in DESTRUCTIVE_KINDS for fault in plan.faults)


def share(plans):
    return sum(plan.may_lose_one for plan in plans) / len(plans)


def test_most_seeds_with_destructive_faults_let_them_strike_and_some_do_not():
    assert COVERED <= share([plan for plan in PLANS if is_destructive(plan)]) < 0.97


def test_seeds_without_them_have_any_minimum_and_change_it():
    others = [plan for plan in PLANS if not is_destructive(plan)]
    assert share(others) < 0.7
    assert {one.kind for plan in others for one in plan.operations} >= set(MINIMUM_KINDS)


def test_seeds_for_a_mutant_have_the_settings_of_its_hunt():
    hunt = Hunt(kinds=("cut the power",), settings={"min.insync.replicas": "1"})
    assert {draw_plan(seed, hunt=hunt).settings["min.insync.replicas"] for seed in range(1, 21)} == {"1"}


def test_every_destructive_kind_is_drawn():
    assert set(SWARM_KINDS) >= DESTRUCTIVE_KINDS
