"""What the atlas spares a replica is counted: a fault that only kills is no power cut."""

from types import SimpleNamespace

import pytest

from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.storage.log_directory import BOOT_ID
from sparklog.testing.simulation.atlas import Atlas
from sparklog.testing.simulation.broker import Machine
from sparklog.testing.simulation.faults import Fault
from sparklog.testing.simulation.inode import Inode
from sparklog.testing.simulation.plan import BROKERS, draw_plan
from sparklog.testing.simulation.simulation import simulate

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
def test_where_one_replica_has_to_suffice_no_disk_loses_anything_and_the_fault_counts_as_spared(kind, amount):
    outcome = outcome_of(kind, "1", amount)
    assert (outcome.faults, outcome.spared, outcome.violation) == (1, 1, None)
    assert not [line for line in outcome.lines if any(one in line for one in HARM)]


@pytest.mark.parametrize(("kind", "word"), [("cut the power", HARM[0]), ("wipe the disk", HARM[1])])
def test_where_two_replicas_have_all_a_disk_loses_what_its_fault_says_and_nothing_is_spared(kind, word):
    outcome = outcome_of(kind, "2", 0.0)
    assert (outcome.faults, outcome.spared, outcome.violation) == (1, 0, None)
    assert [line for line in outcome.lines if word in line]


def a_file(content: bytes) -> Inode:
    inode = Inode()
    inode.write(0, content)
    return inode


def test_a_directory_that_was_refused_a_write_at_a_boots_first_start_proves_nothing_until_the_one_after():
    """Seed 923543: it has lost nothing, and an election of it warns that it may have."""
    here, beside = TopicPartition("quakes", 0), TopicPartition("quakes", 1)
    machine = Machine(BrokerId(2), boots=1)
    machine.disk.directories = {
        "/broker-2/data-1": {BOOT_ID: a_file(b"broker-2 boot 0")},
        "/broker-2/data-1/quakes-0": {},
        "/broker-2/data-2": {BOOT_ID: a_file(b"broker-2 boot 1")},
        "/broker-2/data-2/quakes-1": {},
    }
    told = []
    excuses = SimpleNamespace(distrust=lambda *what: told.append(what))
    witness = SimpleNamespace(truths={here: None, beside: None}, excuses=excuses)
    tree = SimpleNamespace(exists=lambda path: SimpleNamespace(version=6))
    Atlas(None, witness, tree, None, {}).distrust_what_this_boot_has_not_had(machine)
    assert told == [(2, {here}, 7)], "in the incarnation that is about to be"
