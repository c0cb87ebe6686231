"""Plots: each can be played, and finds whom it means."""

import pytest

from simulation.plans.faults import (
    CONTROLLER,
    COORDINATOR,
    EVERY_CLIENT,
    FIRST_FOLLOWER,
    LAST_FOLLOWER,
    LEADER,
    STORE,
    THAT_COORDINATOR,
    THAT_LEADER,
    TRANSACTION_COORDINATOR,
    Fault,
    Hunt,
)
from simulation.plans.plan import BROKERS, CONTROLLERS, draw_plan
from simulation.plans.swarm import ALL_PLOTS
from simulation.run import simulate

ROLES = (
    CONTROLLER,
    LEADER,
    THAT_LEADER,
    COORDINATOR,
    THAT_COORDINATOR,
    FIRST_FOLLOWER,
    LAST_FOLLOWER,
    TRANSACTION_COORDINATOR,
    EVERY_CLIENT,
    STORE,
)


@pytest.mark.parametrize("number", ALL_PLOTS)
def test_a_plot_strikes_while_faults_last_and_those_who_are_there(number):
    plan = draw_plan(1, hunt=Hunt(plot=number))
    assert plan.faults
    assert all(fault.at_ms < plan.faults_end_ms + 6_500 for fault in plan.faults)
    clients = ("", *(f"producer-{one}" for one in (1, 2, 3)))
    assert {fault.target for fault in plan.faults} <= {*BROKERS, *CONTROLLERS, *ROLES}
    assert {fault.other for fault in plan.faults} <= {*BROKERS, *CONTROLLERS, *ROLES, *clients}


def test_a_fault_that_is_meant_for_the_leader_strikes_whoever_leads_then():
    plan = draw_plan(1, hunt=Hunt(kinds=("kill broker",)))
    faults = [Fault(nth, 2_000 + 1_500 * nth, "kill broker", LEADER, "", 400, 1.0) for nth in range(2)]
    outcome = simulate(plan.with_steps(faults), is_told=True)
    assert outcome.violation is None
    leaders, struck, led = [], [], ""
    for line in outcome.lines:
        if "quakes-0 leader" in line:
            led = line.split("leader ")[1].split()[0]
        elif "FAULT" in line:
            leaders.append(led)
            struck.append(line.split("(broker-")[1][0])
    assert struck == leaders
    assert len(set(struck)) == 2
