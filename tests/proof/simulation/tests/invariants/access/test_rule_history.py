"""What ZooKeeper had of access rules, and who may have changed it."""

import pytest

from simulation.invariants.access.rule_history import RuleHistory
from simulation.invariants.invariant import Violation
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.rule_nodes import encode_rules, rules_path, type_path
from sparklog.core.security.rules import Pattern, Rule
from sparklog.model.zookeeper import Create, Delete
from sparklog.testing.memory_zookeeper import ZooKeeperTree

ORDERS = Pattern(ResourceType.topic, "red-orders")
WRITE = Rule("User:red", AclOperation.write)
ASKED = (ORDERS, WRITE)


class World:
    def __init__(self):
        self.now_us = 0
        self.tree = ZooKeeperTree()
        self.session = self.tree.open_session()
        self.tree.ensure_path(self.session, type_path(ORDERS.kind, ORDERS.resource))
        self.history = RuleHistory(self.tree, lambda: self.now_us)

    def writes(self, at_us, *operations):
        self.now_us = at_us
        self.history.look_at_write(operations)
        self.tree.apply(self.session, operations)
        self.history.look_at_zookeeper()


CREATION = Create(rules_path(ORDERS), encode_rules(frozenset({WRITE})))
DELETION = Delete(rules_path(ORDERS))


@pytest.fixture
def world():
    return World()


def test_a_rule_that_somebody_asked_for_may_come_and_go(world):
    world.history.asked_for.add(ASKED)
    world.history.asked_away.add(ASKED)
    world.writes(10, CREATION)
    assert world.history.now == {ORDERS: frozenset({WRITE})}
    world.writes(20, DELETION)
    assert world.history.now == {}
    assert [one.from_us for one in world.history.versions(ORDERS)] == [0, 10, 20]


def test_a_rule_that_nobody_asked_for_breaks_a_rule(world):
    with pytest.raises(Violation, match=r"RulesAreAskedFor.*has got"):
        world.writes(10, CREATION)


def test_a_rule_that_goes_though_nobody_asked_for_that_breaks_a_rule(world):
    world.history.asked_for.add(ASKED)
    world.writes(10, CREATION)
    with pytest.raises(Violation, match=r"RulesAreAskedFor.*has lost"):
        world.writes(20, DELETION)


def test_it_is_known_whether_a_rule_was_there_since_some_time(world):
    world.history.asked_for.add(ASKED)
    world.history.asked_away.add(ASKED)
    world.writes(10, CREATION)
    world.writes(20, DELETION)
    world.now_us = 30
    had = world.history.had
    assert had(ASKED, is_there=True, since_us=15)
    assert not had(ASKED, is_there=True, since_us=25)
    assert had(ASKED, is_there=False, since_us=25)
    assert had(ASKED, is_there=False, since_us=5)
