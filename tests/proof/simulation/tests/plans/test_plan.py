"""What seeds draw: faults that take a disk's word away need two replicas that have everything."""

from dataclasses import replace

import pytest

from simulation.plans import plan as planning
from simulation.plans.client_links import ADMINISTRATOR, KINDS, OF_ANSWERS, TROUBLED, links_of
from simulation.plans.faults import (
    DESTRUCTIVE_KINDS,
    EVERY_CLIENT,
    STORE_KINDS,
    SWARM_KINDS,
    Fault,
    Hunt,
)
from simulation.plans.operations import MINIMUM_KINDS
from simulation.plans.plan import COVERED, FAULTS_BEGIN_MS, draw_plan
from simulation.plans.swarm import BLACKED_OUT, FLIPPED, ISR_WITHOUT_DISKS, LAST_MS, NO_DISK_LEFT

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


def test_bits_flip_in_some_seeds_and_are_listed_by_time_like_other_faults():
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


def disks_gone(plan):
    return sum(fault.kind == "empty a disk" for fault in plan.faults)


def test_in_some_seeds_an_isr_loses_its_disks_and_in_others_every_broker_does():
    without_store = [plan for plan in PLANS if plan.tier is None]
    of_isr = [plan for plan in PLANS if 0 < disks_gone(plan) < len(plan.brokers)]
    of_all = [plan for plan in without_store if disks_gone(plan) == len(plan.brokers)]
    assert 0.7 * ISR_WITHOUT_DISKS < len(of_isr) / len(PLANS) < 1.3 * ISR_WITHOUT_DISKS
    assert 0.6 * NO_DISK_LEFT < len(of_all) / len(without_store) < 1.4 * NO_DISK_LEFT
    assert {disks_gone(plan) for plan in of_isr} == {1, 2}
    for plan in (*of_isr, *of_all):
        downs = {fault.target for fault in plan.faults if fault.kind in ("empty a disk", "kill broker")}
        assert downs >= set(plan.brokers)


def test_all_disks_go_in_as_many_seeds_with_a_store_as_without():
    struck = [plan for plan in map(draw_plan, range(1, 1_001)) if disks_gone(plan) == len(plan.brokers)]
    with_store = [plan for plan in struck if plan.tier is not None]
    assert 0.3 < len(with_store) / len(struck) < 0.7
    assert any(fault.kind == "lose the store" for plan in with_store for fault in plan.faults)


def test_an_operator_gives_the_store_up_in_most_seeds_where_it_is_away_and_in_no_other():
    plans = [draw_plan(seed) for seed in range(1, 1_301)]
    given_up = [plan for plan in plans if any(one.kind == "elect without store" for one in plan.operations)]
    away = [
        plan
        for plan in plans
        if disks_gone(plan) and any(fault.kind == "lose the store" for fault in plan.faults)
    ]
    assert 0.4 < len(given_up) / len(away) <= 1
    for plan in given_up:
        assert plan in away
        assert [one.at_ms for one in plan.operations] == sorted(one.at_ms for one in plan.operations)
        assert len({one.number for one in plan.operations}) == len(plan.operations)


def test_what_else_a_seed_draws_is_the_same_with_lost_disks_and_without(monkeypatch):
    monkeypatch.setattr(planning, "add_lost_disks", lambda draw, faults, **unused: faults)
    for plan in PLANS:
        without = draw_plan(plan.seed)
        assert set(without.faults) <= set(plan.faults)
        assert replace(plan, faults=(), operations=()) == replace(without, faults=(), operations=())
        assert set(without.operations) <= set(plan.operations)
        if not disks_gone(plan):
            assert plan == without


CLIENTS = (
    "producer-",
    "plain-",
    "consumer-",
    "rereader-",
    "asker-",
    "member-",
    "offsets-",
    "keeper-",
    "transactional-",
    "app-",
    ADMINISTRATOR,
    EVERY_CLIENT,
)


def is_of_a_client(fault):
    return fault.target.startswith(CLIENTS) or fault.other.startswith(CLIENTS)


def troubles_of(plan):
    """But for those of plots, which name the clients that they mean."""
    return [fault for fault in plan.faults if is_of_a_client(fault)]


@pytest.mark.parametrize(
    ("adds", "is_added"),
    [
        ("add_flips", lambda fault: fault.kind == "flip bits"),
        ("add_blackouts", lambda fault: fault.kind == "cut all power"),
        ("add_client_troubles", is_of_a_client),
    ],
)
def test_what_else_a_seed_draws_is_the_same_with_what_has_dice_of_its_own_and_without(
    monkeypatch, adds, is_added
):
    monkeypatch.setattr(planning, adds, lambda draw, faults, **unused: faults)
    for plan in PLANS:
        without = draw_plan(plan.seed)
        if any(is_added(fault) for fault in without.faults):
            continue  # a plot's own
        facts = [
            sorted((replace(fault, number=0) for fault in faults if not is_added(fault)), key=str)
            for faults in (plan.faults, without.faults)
        ]
        assert facts[0] == facts[1]
        assert replace(plan, faults=(), operations=()) == replace(without, faults=(), operations=())
        assert set(without.operations) <= set(plan.operations)


def test_in_some_seeds_links_of_clients_have_the_troubles_of_links_of_brokers():
    troubled = [plan for plan in PLANS if troubles_of(plan)]
    assert 0.8 * TROUBLED < len(troubled) / len(PLANS) < 1.2 * TROUBLED
    found = [fault for plan in troubled for fault in troubles_of(plan)]
    assert {fault.kind for fault in found} == {*KINDS, "repeat requests"}
    for prefix in CLIENTS:
        assert any(fault.target.startswith(prefix) for fault in found), prefix
        assert any(fault.other.startswith(prefix) for fault in found), prefix
    for fault in found:
        ends = {fault.target, fault.other}
        if fault.kind == "repeat requests":
            assert fault.target == ADMINISTRATOR, "nobody else's requests come twice by themselves"
        elif fault.kind in OF_ANSWERS:
            assert fault.other.startswith(CLIENTS), "they come from brokers"
        assert ADMINISTRATOR in ends or any(end.startswith("broker-") for end in ends)


def test_the_links_of_every_client_are_those_of_all_who_have_called():
    fault = Fault(1, 2, "cut one way", EVERY_CLIENT, "broker-1", 3, 0.0)
    assert links_of(fault, ["a", "b"]) == [("a", "broker-1"), ("b", "broker-1")]
    back = replace(fault, target="broker-1", other=EVERY_CLIENT)
    assert links_of(back, ["a", "b"]) == [("broker-1", "a"), ("broker-1", "b")]
    assert links_of(replace(fault, target="broker-2"), ["a"]) == [("broker-2", "broker-1")]


def test_the_power_of_all_is_cut_in_half_of_the_seeds_that_must_lose_nothing():
    by_acks = {"fsync": 0, "written": 0}
    for plan in PLANS:
        kinds = {fault.kind for fault in plan.faults if not is_of_a_client(fault)}
        is_swarm = not kinds <= {"kill broker", "cut all power", "flip bits", "empty a disk", *STORE_KINDS}
        by_acks[plan.settings["log.flush.acks"]] += is_swarm and "cut all power" in kinds
    assert by_acks["written"] == 0, "replication promises nothing"
    assert 0.8 * BLACKED_OUT < by_acks["fsync"] / count_of_fsync() < 1.2 * BLACKED_OUT


def count_of_fsync():
    return sum(plan.settings["log.flush.acks"] == "fsync" for plan in PLANS)


def test_flips_are_hunted_by_their_kind_and_then_nothing_else_goes_wrong():
    plans = [draw_plan(seed, hunt=Hunt(kinds=("flip bits",))) for seed in range(1, 21)]
    assert {fault.kind for plan in plans for fault in plan.faults} == {"flip bits"}
    assert not any(draw_plan(plan.seed, without_faults=True).faults for plan in plans)
