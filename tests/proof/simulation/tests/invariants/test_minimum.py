"""Appends with acks=all, and commits, need ``min.insync.replicas`` in sync, as their leader knows the ISR."""

from types import SimpleNamespace

import pytest

from simulation.invariants.invariant import Violation
from simulation.invariants.minimum import EnoughAreInSync
from simulation.truth import Entry
from sparklog.core.replication.isr import CommittedIsr, ExpandingIsr, ShrinkingIsr

SENT = Entry(4, 5, 3, 1_000, 0, 7, 99)
ALONE = CommittedIsr(frozenset({1}), 8)
BOTH = CommittedIsr(frozenset({1, 2}), 8)


def situation(isr, *, minimum=2, leader_epoch=3, min_isr=2):
    """Epoch 3 in ZooKeeper, with three replicas and this minimum; and somebody who leads."""
    machine = SimpleNamespace(isr=isr, leader_epoch=leader_epoch, min_isr=min_isr)
    partition = SimpleNamespace(_replica=SimpleNamespace(leader=machine), high_watermark=5)
    state = SimpleNamespace(leader_epoch=3, min_insync_replicas=minimum, replicas=(1, 2, 3))
    truth = SimpleNamespace(topic_partition="quakes-0", state=state)
    view = SimpleNamespace(broker_id=1, partition=partition, is_read_anew=False, high_watermark=4)
    return truth, view, partition


@pytest.fixture
def rule():
    return EnoughAreInSync({SENT[3:]})


@pytest.mark.parametrize(
    "isr",
    [
        pytest.param(ALONE, id="alone"),
        pytest.param(ExpandingIsr(ALONE, 2, 1), id="another one is about to join, and may not"),
    ],
)
def test_nothing_is_appended_with_acks_all_below_the_minimum_nor_is_anything_committed(rule, isr):
    truth, view, partition = situation(isr)
    with pytest.raises(Violation, match=r"EnoughAreInSync: .* broker 1 took \[4\.\.4 .* with the ISR \[1\]"):
        rule.on_replica(truth, view, partition, [SENT])
    with pytest.raises(Violation, match=r"broker 1 committed \[4\.\.4 .* with the ISR \[1\] in epoch 3"):
        rule.on_commit(truth, view, [SENT])


@pytest.mark.parametrize(
    "isr", [pytest.param(BOTH, id="both"), pytest.param(ShrinkingIsr(BOTH, frozenset({2}), 1), id="still")]
)
def test_with_the_minimum_in_sync_both_may_be(rule, isr):
    truth, view, partition = situation(isr)
    rule.on_replica(truth, view, partition, [SENT])
    rule.on_commit(truth, view, [SENT])


def test_what_is_sent_with_another_acks_may_be_appended_by_a_leader_alone(rule):
    truth, view, partition = situation(ALONE)
    rule.on_replica(truth, view, partition, [SENT._replace(crc=1)])


def test_records_of_an_earlier_epoch_or_found_at_a_start_are_not_new_appends(rule):
    truth, view, partition = situation(ALONE)
    rule.on_replica(truth, view, partition, [SENT._replace(leader_epoch=2)])
    view.is_read_anew = True
    rule.on_replica(truth, view, partition, [SENT])


def test_what_it_knew_to_be_committed_before_it_led_it_does_not_commit_now(rule):
    """An unclean election of another one had lost it in between; seed 610 with fsync."""
    truth, view, _ = situation(ALONE)
    view.high_watermark = 5
    rule.on_commit(truth, view, [SENT])


def test_a_leader_goes_by_the_minimum_of_its_epoch_which_zookeeper_has(rule):
    truth, view, partition = situation(ALONE, min_isr=1)
    with pytest.raises(Violation, match="EnoughAreInSync"):
        rule.on_replica(truth, view, partition, [SENT])
    truth, view, partition = situation(ALONE, min_isr=1, leader_epoch=2)
    rule.on_replica(truth, view, partition, [SENT._replace(leader_epoch=2)])
