"""Groups in whole runs: calm ones, troubled ones, and what is checked of their coordinators."""

from dataclasses import replace

import pytest

from simulation.clients.groups.crowd import Crowd
from simulation.clients.groups.member import Member
from simulation.invariants.coordinators import CoordinatorsAreAReplay
from simulation.plans.groups import ALL_CHURN, WITH_GROUPS, clients_of_group, draw_groups
from simulation.plans.plan import draw_plan
from simulation.run import simulate
from sparklog.core.group.group_machine import GroupMachine

SEEDS = [seed for seed in range(1, 60) if draw_groups(seed)]


def calm(seed, **changes):
    """The plan of a seed with groups; the first one is changed, and nothing goes wrong."""
    plan = draw_plan(seed, without_faults=True)
    return replace(plan, groups=(replace(plan.groups[0], **changes), *plan.groups[1:]))


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_groups_that_nothing_happens_to_break_no_rule_and_come_to_rest(seed):
    outcome = simulate(calm(seed), is_told=True)
    assert outcome.violation is None
    assert outcome.marks["a coordinator loaded"]
    assert any("commit member-" in line and line.endswith(": none") for line in outcome.lines)


@pytest.mark.scenario("S15")
def test_a_twin_takes_the_place_of_a_static_member_which_is_fenced():
    outcome = simulate(calm(SEEDS[0], members=2, statics=2, churn=("twin",), churn_ms=300.0, rude_share=0.8))
    assert outcome.violation is None
    assert outcome.marks["a twin of a static member began"]
    assert outcome.marks["a member was fenced by its twin"]


def test_rude_members_commit_too_early_and_too_late_and_are_refused():
    changes = {"members": 3, "statics": 0, "churn": ("leave", "die", "stall"), "churn_ms": 150.0}
    outcome = simulate(calm(SEEDS[0], session_timeout_ms=400, rude_share=1.0, **changes))
    assert outcome.violation is None
    assert outcome.marks["a commit between join and assignment was refused"]
    assert outcome.marks["a commit of another generation was refused"]


def test_members_that_never_get_a_share_keep_a_cluster_from_rest(monkeypatch):
    monkeypatch.setattr(Member, "_synced", lambda self, response: None)
    violation = simulate(calm(SEEDS[0])).violation
    assert violation.invariant == "ComesToRest"
    assert "has no share in which it could commit" in violation.what


def test_a_coordinator_that_applies_something_else_than_its_log_is_found(monkeypatch):
    def applied_state(self):
        return dict(list(self.state.applied.as_records().items())[1:])

    monkeypatch.setattr(GroupMachine, "applied_state", applied_state)
    violation = simulate(calm(SEEDS[0])).violation
    assert violation.invariant == CoordinatorsAreAReplay.__name__
    assert "up to" in violation.what


def test_a_seed_with_groups_is_the_same_run_twice():
    plan = draw_plan(SEEDS[1])
    first, second = simulate(plan, is_told=True), simulate(plan, is_told=True)
    assert first.violation is None
    assert first.digest == second.digest


def test_some_seeds_have_groups_and_links_to_their_clients_fail():
    plans = [draw_plan(seed) for seed in range(1, 501)]
    having = [plan for plan in plans if plan.groups]
    assert 0.8 * WITH_GROUPS < len(having) / len(plans) < 1.2 * WITH_GROUPS
    names = {
        name for plan in having for n, group in enumerate(plan.groups) for name in clients_of_group(n, group)
    }
    ends = {end for plan in having for fault in plan.faults for end in (fault.target, fault.other)}
    assert {name.split("-")[0] for name in ends & names} == {"member", "offsets", "keeper"}
    assert {kind for plan in having for group in plan.groups for kind in group.churn} == set(ALL_CHURN)
    assert any(group.statics for plan in having for group in plan.groups)


def test_what_a_seed_without_groups_draws_knows_nothing_of_groups():
    plans = [draw_plan(seed) for seed in range(1, 60) if seed not in SEEDS]
    for plan in (plan for plan in plans if not plan.has_transaction_states):
        assert not any(name.startswith(("offsets.", "group.")) for name in plan.settings)
        assert plan.settings["zookeeper.session.timeout.ms"] == "2000"


def test_members_commit_in_shares_that_they_get_after_their_group_was_at_rest(monkeypatch):
    """Seed 4835: a member's session ended while only other clients were not at rest."""
    rests = []
    unrest = Crowd.unrest

    def end_a_member_at_the_first_rest(crowd):
        trouble = unrest(crowd)
        if trouble is None and not rests:
            next(crowd._members()).end()
            rests.append(crowd)
            return "a member has ended"
        return trouble

    monkeypatch.setattr(Crowd, "unrest", end_a_member_at_the_first_rest)
    assert simulate(calm(SEEDS[0], members=2, statics=0, session_timeout_ms=400)).violation is None
    assert rests
