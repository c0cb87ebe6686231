"""The rule about announcements fires where one is missing, comes twice, or contradicts another."""

import uuid
from types import SimpleNamespace

import pytest

from simulation.invariants.invariant import Violation
from simulation.invariants.leadership import LeadershipIsAnnounced
from sparklog.model.ids import TopicPartition


class Replica:
    """What the rule looks at in a partition."""

    topic_id = uuid.UUID(int=7)
    topic_partition = TopicPartition("main", 0)
    leader_epoch = 3

    def __init__(self, *, is_leader=True) -> None:
        self.is_leader = is_leader


@pytest.fixture
def rule():
    return LeadershipIsAnnounced()


def test_epochs_that_begin_and_end_in_turn_are_sound(rule):
    one, other = Replica(), Replica()
    rule.began("broker-1#1", one, 3)
    rule.ceased("broker-1#1", one, 3)
    rule.began("broker-2#1", other, 4)
    rule.began("broker-1#1", one, 5)


def test_two_replicas_cannot_begin_the_same_epoch(rule):
    rule.began("broker-1#1", Replica(), 3)
    with pytest.raises(Violation, match=r"epoch 3 began at broker-2#1, and before at broker-1#1"):
        rule.began("broker-2#1", Replica(), 3)


def test_two_lives_of_a_replica_cannot_begin_the_same_epoch(rule):
    rule.began("broker-1#1", Replica(), 3)
    with pytest.raises(Violation, match="began at broker-1#2"):
        rule.began("broker-1#2", Replica(), 3)


@pytest.mark.parametrize("epoch", [2, 4])
def test_an_epoch_cannot_begin_before_the_one_before_it_has_ended(rule, epoch):
    one = Replica()
    rule.began("broker-1#1", one, 3)
    with pytest.raises(Violation, match="must end first"):
        rule.began("broker-1#1", one, epoch)


def test_an_epoch_cannot_end_that_has_not_begun(rule):
    with pytest.raises(Violation, match="had begun None"):
        rule.ceased("broker-1#1", Replica(), 3)


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_replica_leads_if_and_only_if_it_was_announced(rule, is_announced):
    one = Replica(is_leader=not is_announced)
    if is_announced:
        rule.began("broker-1#1", one, 3)
    with pytest.raises(Violation, match="leads in epoch"):
        rule.on_replica(None, SimpleNamespace(broker_id=1), one, [])


def test_a_silent_rule_accuses_nobody(rule):
    rule.is_silent = True
    rule.ceased("broker-1#1", Replica(), 3)
