"""Rules about what logs remember, starts, and who is counted: each fires, and only where it should."""

from types import SimpleNamespace

import pytest

from sparklog.core.controller.znodes import broker_path
from sparklog.model.ids import TopicPartition
from sparklog.testing.simulation.derived import _fits
from sparklog.testing.simulation.invariants import Violation
from sparklog.testing.simulation.presence import NOTICED_MS, CountsWhoIsThere, StopsOutsideTheIsr
from sparklog.testing.simulation.restarts import OnlyDamageIsCalledDamage, RemembersWhatIsCommitted


def truth(**facts):
    return SimpleNamespace(topic_partition="quakes-0", **facts)


def state(isr, *, leader=1, epoch=3):
    return SimpleNamespace(isr=isr, leader=leader, leader_epoch=epoch, has_leader=leader >= 0)


@pytest.mark.parametrize(
    ("known", "in_log", "fits"),
    [
        pytest.param([4, 5, 6], [4, 5, 6], True, id="equal"),
        pytest.param([3, 4, 5, 6, 7], [4, 5, 6, 7], True, id="the oldest was compacted away"),
        pytest.param([3, 4, 5, 6, 7], [0, 4, 5, 6, 7], True, id="and an older one had to stay"),
        pytest.param([0, 3, 6, 9], [0, 9], False, id="only the last one stayed"),
        pytest.param([9], [6, 9], False, id="forgotten though there is room"),
        pytest.param([], [6], False, id="all forgotten"),
        pytest.param([4, 9], [4], False, id="the last one is not in the log"),
    ],
)
def test_in_a_compacted_log_only_the_oldest_batches_that_are_remembered_may_be_missing(known, in_log, fits):
    assert _fits(known, in_log) is fits


def test_a_log_that_is_called_damaged_was_damaged_by_something():
    rule = OnlyDamageIsCalledDamage()
    damaged = SimpleNamespace(log=SimpleNamespace(corruption=SimpleNamespace(reason="it ends too soon")))
    rule.on_start(truth(), 2, damaged, may_be_damaged=True)
    with pytest.raises(Violation, match="which nothing has touched: it ends too soon"):
        rule.on_start(truth(), 2, damaged, may_be_damaged=False)


@pytest.mark.parametrize(
    ("end_before", "end", "remembered", "is_right"),
    [
        pytest.param(48, 48, 47, True, id="nothing was cut, and all is known"),
        pytest.param(48, 48, 46, False, id="nothing was cut, and something is forgotten"),
        pytest.param(48, 30, 30, True, id="as far as the log reaches"),
        pytest.param(0, 48, 10, True, id="died before it threw its log away"),
        pytest.param(40, 48, 40, True, id="died before a cut"),
        pytest.param(40, 48, 39, False, id="died before a cut, and forgot what the cut would have left"),
        pytest.param(40, 40, 39, False, id="died behind a cut, and forgot what the cut has left"),
    ],
)
def test_a_start_knows_of_what_was_committed_what_the_start_before_knew_and_no_cut_was_to_take(
    end_before, end, remembered, is_right
):
    rule = RemembersWhatIsCommitted()
    replica = truth(topic_id=1, lossy_epoch=-1)
    replica.topic_partition = TopicPartition("quakes", 0)

    def start(high_watermark, log_end_offset, end_before):
        found = SimpleNamespace(high_watermark=high_watermark, log_end_offset=log_end_offset)
        rule.on_start(replica, 2, found, end_before=end_before, was_struck=False)

    start(47, 48, 48)
    if is_right:
        start(remembered, end, end_before)
        return
    with pytest.raises(Violation, match=rf"starts with high watermark {remembered}, .* it knew 47"):
        start(remembered, end, end_before)


def test_who_is_gone_for_long_must_not_join_and_who_is_back_may():
    registered = set()
    tree = SimpleNamespace(exists=lambda path: True if path in registered else None)
    rule = CountsWhoIsThere(brokers=(3,))
    rule.look_at_zookeeper(tree, 1_000)
    rule.on_change(truth(), state((1, 2)), state((1, 2, 3)), 1_000 + NOTICED_MS)
    with pytest.raises(Violation, match="broker 3 joined the ISR, and is gone since 1000 ms"):
        rule.on_change(truth(), state((1, 2)), state((1, 2, 3)), 1_001 + NOTICED_MS)
    registered.add(broker_path(3))
    rule.look_at_zookeeper(tree, 5_000)
    rule.on_change(truth(), state((1, 2)), state((1, 2, 3)), 9_000)


def test_who_stops_as_it_may_is_in_no_isr_but_its_own():
    rule = StopsOutsideTheIsr()
    rule.on_clean_stop(truth(state=state((1, 2))), 3)
    rule.on_clean_stop(truth(state=state((3, 2), leader=3)), 3)
    with pytest.raises(Violation, match="broker 3 has stopped"):
        rule.on_clean_stop(truth(state=state((1, 3))), 3)
