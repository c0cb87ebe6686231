"""What the atlas spares a replica is counted: a fault that only kills is no power cut."""

import pytest

from simulation.plans.faults import Fault
from simulation.plans.plan import BROKERS, draw_plan
from simulation.run import simulate

HARM = (
    "loses power",
    "comes back with an empty disk",
    "meets an error of its disk",
    "has lost what",
    "rots: ",
)


def outcome_of(kind: str, minimum: str, amount: float):
    plan = draw_plan(3, without_faults=True)
    plan.settings["min.insync.replicas"] = minimum
    fault = Fault(0, 2_500, kind, BROKERS[1], "", 600, amount)
    return simulate(plan.with_steps((fault,)), is_told=True)


@pytest.mark.parametrize(
    ("kind", "amount"),
    [
        ("cut the power", 0.0),
        ("wipe the disk", 0.0),
        ("reboot", 1.0),
        ("rot a log", 0.0),
        ("rot a batch", 0.0),
    ],
)
def test_with_one_sufficient_replica_a_disk_fault_is_spared(kind, amount):
    outcome = outcome_of(kind, "1", amount)
    assert (outcome.faults, outcome.spared, outcome.violation) == (1, 1, None)
    assert not [line for line in outcome.lines if any(one in line for one in HARM)]


@pytest.mark.parametrize(("kind", "word"), [("cut the power", HARM[0]), ("wipe the disk", HARM[1])])
def test_with_two_sufficient_replicas_a_disk_fault_takes_its_data(kind, word):
    outcome = outcome_of(kind, "2", 0.0)
    assert (outcome.faults, outcome.spared, outcome.violation) == (1, 0, None)
    assert [line for line in outcome.lines if word in line]


@pytest.mark.parametrize("minimum", ["1", "2"])
def test_a_disk_is_emptied_whatever_others_have(minimum):
    outcome = outcome_of("empty a disk", minimum, 0.0)
    assert (outcome.faults, outcome.spared, outcome.violation) == (1, 0, None)
    assert [line for line in outcome.lines if HARM[1] in line]
