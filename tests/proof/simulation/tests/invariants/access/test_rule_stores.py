"""The rules that servers go by, beside those of ZooKeeper."""

import pytest

from simulation.invariants.access.rule_history import RuleHistory, Version
from simulation.invariants.access.rule_stores import LATE_LOOKS, RuleStores
from simulation.invariants.invariant import Violation
from simulation.schedule import Process, Schedule
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.authorizer import Authorizer
from sparklog.core.security.rules import Pattern, Rule
from sparklog.testing.memory_zookeeper import ZooKeeperTree

ORDERS = Pattern(ResourceType.topic, "red-orders")
READ, WRITE = AclOperation.read, AclOperation.write
MAY_WRITE = frozenset({Rule("User:red", WRITE)})
MAY_READ = frozenset({Rule("User:red", READ)})


class World:
    """A server that has read the rules before there were any; then a team might write, and then read."""

    def __init__(self):
        self.now_us = 0
        self.reached = []
        self.history = RuleHistory(ZooKeeperTree(), lambda: self.now_us)
        self.stores = RuleStores(self.history, without_rules=False, reach=self.reached.append)
        self.process = Process(Schedule(), "broker-1#1")
        self.authorizer = Authorizer()
        self.stores.enrol(self.process, self.authorizer)
        self.history.versions(ORDERS).extend((Version(MAY_WRITE, 10), Version(MAY_READ, 20)))

    def knows(self, rules):
        self.authorizer.book.put(ORDERS, rules)
        self.stores.look_at(self.process)

    def looks(self, times, *, is_undisturbed=True):
        for _ in range(times):
            self.stores.look_whether_late(self.process, is_undisturbed=is_undisturbed)


@pytest.fixture
def world():
    return World()


def test_a_server_may_pass_over_a_version_and_never_goes_back(world):
    world.knows(MAY_READ)
    with pytest.raises(Violation, match="StoresFollowZooKeeper"):
        world.knows(MAY_WRITE)


def test_rules_that_zookeeper_never_had_break_a_rule(world):
    with pytest.raises(Violation, match="StoresFollowZooKeeper"):
        world.knows(MAY_READ | MAY_WRITE)


def test_a_server_that_hears_of_everything_must_know_it_soon(world):
    world.looks(LATE_LOOKS)
    with pytest.raises(Violation, match=r"RulesBindSoon.*version 1 of"):
        world.looks(2)


def test_a_server_that_is_cut_off_keeps_its_rules_and_counts_anew_when_it_is_back(world):
    world.knows(MAY_WRITE)
    world.looks(LATE_LOOKS)
    world.looks(100, is_undisturbed=False)
    assert "a server went by old rules while it was cut off" in world.reached
    world.looks(LATE_LOOKS)
    world.knows(MAY_READ)
    world.looks(100)
    assert world.stores.unrest(world.process) is None


def test_what_a_server_said_since_some_time_follows_from_the_rules_that_it_had(world):
    question = (world.process, "User:red", "red-writer-0", WRITE, "red-orders")
    world.now_us = 12
    world.knows(MAY_WRITE)
    assert world.stores.allows(*question)
    world.now_us = 22
    world.knows(MAY_READ)
    world.now_us = 30
    assert not world.stores.allows(*question)
    assert world.stores.said(*question, since_us=25) == {False}
    assert world.stores.said(*question, since_us=15) == {True, False}


def test_a_server_that_has_not_read_the_rules_is_not_at_rest(world):
    other = Process(Schedule(), "broker-2#1")
    assert world.stores.unrest(other) == "broker-2#1 has not read the access rules"
    assert world.stores.unrest(world.process) == f"broker-1#1 lacks the rules of now for {ORDERS}"
