"""Principals in whole runs: rules change under two teams, and nobody does what no rule allows."""

from dataclasses import replace

import pytest

from simulation.plans.faults import Fault
from simulation.plans.plan import draw_plan
from simulation.plans.principals import (
    BROKER,
    NEVER_MS,
    OFFICE,
    WITH_NAMES,
    WITH_PRINCIPALS,
    draw_principals,
    principal_of,
)
from simulation.run import simulate

REACHED = {"access rules were changed", "a write was denied", "a read was denied"}
OF_NAMES = {
    "a team used the other's name by a rule",
    "a team was refused the other's name",
    "both teams agreed upon values of one name",
}


def test_a_seventh_of_the_seeds_has_principals():
    drawn = [one for one in (draw_principals(seed, (), 1_000) for seed in range(1, 2_001)) if one]
    assert abs(len(drawn) / 2_000 - WITH_PRINCIPALS) < 0.03
    assert {one.are_brokers_by_rule for one in drawn} == {True, False}
    assert {one.allows_without_rules for one in drawn} == {True, False}


def test_in_half_of_these_teams_use_names_and_the_others_are_what_they_would_be_without():
    drawn = [draw_principals(seed, (), 1_000, share=1.0) for seed in range(1, 1_001)]
    assert abs(sum(one.name_users > 0 for one in drawn) / 1_000 - WITH_NAMES) < 0.05
    without = [draw_principals(seed, (), 1_000, share=1.0, names=0.0) for seed in range(1, 1_001)]
    assert [replace(one, name_users=0) for one in drawn] == without


def test_who_calls_says_which_principal_it_is():
    origins = ("broker-1", "broker-2-1", "controller-a", "red-writer-0", "red", "producer-1", "redish-1")
    assert [principal_of(one) for one in origins] == [
        *(BROKER, BROKER, BROKER, "User:red"),
        *(OFFICE, OFFICE, OFFICE),
    ]


@pytest.mark.parametrize("kind", ["lag zookeeper", "delay watches"])
def test_notifications_stay_where_somebody_who_is_connected_may_hear_of_them_late(kind):
    late = Fault(0, 2_000, kind, "broker-1", "", 900, 0.0)
    plan = draw_principals(1, (late,), 1_000, share=1.0)
    assert plan.kept_ms == NEVER_MS
    assert draw_principals(1, (), 1_000, share=1.0).kept_ms < NEVER_MS


@pytest.mark.parametrize("seed", [seed for seed in range(1, 40) if draw_plan(seed).principals][:2])
def test_rules_change_under_two_teams_and_no_rule_is_broken(seed):
    outcome = simulate(draw_plan(seed))
    assert outcome.violation is None
    assert outcome.marks.keys() >= REACHED


def test_names_of_writes_are_their_owners_and_each_team_agrees_upon_values_of_its_own():
    seed = next(seed for seed in range(1, 100) if has_several_users_of_names(draw_plan(seed)))
    outcome = simulate(draw_plan(seed))
    assert outcome.violation is None
    assert outcome.marks.keys() >= OF_NAMES


def has_several_users_of_names(plan):
    return plan.principals is not None and plan.principals.name_users > 1
