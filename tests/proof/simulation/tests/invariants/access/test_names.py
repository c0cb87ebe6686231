"""Whose the names of atomic writes are, and whose value counts under a name."""

import pytest

from simulation.invariants.access.names import NameRules
from simulation.invariants.access.rule_history import RuleHistory
from simulation.invariants.access.rule_stores import RuleStores
from simulation.invariants.invariant import Violation
from sparklog.testing.memory_zookeeper import ZooKeeperTree

RED, BLUE = "User:red", "User:blue"


@pytest.fixture
def reached():
    return []


@pytest.fixture
def rules(reached):
    history = RuleHistory(ZooKeeperTree(), lambda: 0)
    stores = RuleStores(history, without_rules=False, reach=reached.append)
    return NameRules(stores, lambda: 0, reached.append)


def test_a_name_passes_from_nobody_to_its_owner_and_stays_there(rules):
    for owner in ("", RED, RED):
        rules.on_owner("write-1", owner)
    with pytest.raises(Violation, match=r"OwnersStay: write-1 is given to User:blue, and User:red owns it"):
        rules.on_owner("write-1", BLUE)
    with pytest.raises(Violation, match=r"OwnersStay: write-1 is given to nobody"):
        rules.on_owner("write-1", "")


def test_after_a_loss_of_what_coordinators_knew_a_name_may_get_another_owner(rules):
    rules.on_owner("write-1", RED)
    rules.has_lost = lambda: True
    rules.on_owner("write-1", BLUE)


def test_each_team_has_a_value_of_its_own_under_one_name(rules, reached):
    rules.on_value(RED, "cut-1", b"red-names-0 1")
    rules.on_value(BLUE, "cut-1", b"blue-names-0 7")
    assert reached == ["both teams agreed upon values of one name"]


def test_a_value_that_the_other_team_has_put_breaks_a_rule(rules):
    with pytest.raises(Violation, match=r"ValuesStayInTheirTeam: User:blue is given b'red-names-0 1'"):
        rules.on_value(BLUE, "cut-1", b"red-names-0 1")


def test_a_second_value_under_a_name_breaks_a_rule(rules):
    rules.on_value(RED, "cut-1", b"red-names-0 1")
    with pytest.raises(Violation, match=r"TheFirstValueCounts: User:red is given b'red-names-1 1'"):
        rules.on_value(RED, "cut-1", b"red-names-1 1")
