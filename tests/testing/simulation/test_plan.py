"""What seeds draw: faults that take a disk's word away need two replicas that have everything."""

from dataclasses import replace

from sparklog.testing.simulation import plan as planning
from sparklog.testing.simulation.faults import DESTRUCTIVE_KINDS, SWARM_KINDS, Hunt
from sparklog.testing.simulation.operations import MINIMUM_KINDS
from sparklog.testing.simulation.plan import COVERED, FAULTS_BEGIN_MS, draw_plan
from sparklog.testing.simulation.swarm import BLACKED_OUT, FLIPPED, LAST_MS

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


def flips_of(plan):
    return [fault for fault in plan.faults if fault.kind == "flip bits"]


def test_bits_flip_in_some_seeds_while_there_are_faults_and_are_listed_by_time_like_others():
    flipped = [plan for plan in PLANS if flips_of(plan)]
    assert 0.8 * FLIPPED < len(flipped) / len(PLANS) < 1.2 * FLIPPED
    assert {len(flips_of(plan)) for plan in flipped} == {1, 2, 3}
    for plan in flipped:
        numbers = [fault.number for fault in plan.faults]
        assert len(set(numbers)) == len(numbers)
        assert [one.at_ms for one in plan.faults] == sorted(one.at_ms for one in plan.faults)
        for flip in flips_of(plan):
            assert FAULTS_BEGIN_MS <= flip.at_ms < plan.faults_end_ms
            assert flip.at_ms + flip.duration_ms <= plan.faults_end_ms + LAST_MS
            assert flip.target in plan.brokers
            assert 0 < flip.amount <= 0.5


def by_number(faults):
    return sorted(faults, key=lambda fault: fault.number)


def test_what_else_a_seed_draws_is_the_same_with_flips_and_without(monkeypatch):
    monkeypatch.setattr(planning, "add_flips", lambda draw, faults, **unused: faults)
    for plan in PLANS:
        without = draw_plan(plan.seed)
        others = [fault for fault in plan.faults if fault.kind != "flip bits"]
        assert by_number(others) == by_number(without.faults)
        assert replace(plan, faults=()) == replace(without, faults=())


def test_where_nothing_committed_may_go_with_the_power_of_all_it_goes_in_half_of_the_seeds_of_every_kind():
    by_acks = {"fsync": 0, "written": 0}
    for plan in PLANS:
        kinds = {fault.kind for fault in plan.faults}
        is_swarm = not kinds <= {"kill broker", "cut all power", "flip bits"}
        by_acks[plan.settings["log.flush.acks"]] += is_swarm and "cut all power" in kinds
    assert by_acks["written"] == 0, "replication promises nothing"
    assert 0.8 * BLACKED_OUT < by_acks["fsync"] / count_of_fsync() < 1.2 * BLACKED_OUT


def count_of_fsync():
    return sum(plan.settings["log.flush.acks"] == "fsync" for plan in PLANS)


def test_flips_are_hunted_by_their_kind_and_then_nothing_else_goes_wrong():
    plans = [draw_plan(seed, hunt=Hunt(kinds=("flip bits",))) for seed in range(1, 21)]
    assert {fault.kind for plan in plans for fault in plan.faults} == {"flip bits"}
    assert not any(draw_plan(plan.seed, without_faults=True).faults for plan in plans)
