"""Which leaders are doubted, and for how long."""

import pytest

from sparklog.broker.metadata.doubted_leaders import LOST_MS, REFUSED_MS, DoubtedLeaders
from sparklog.model.ids import BrokerEpoch, BrokerId
from tests.broker.conftest import ManualClock

LEADER, EPOCH, NEXT_EPOCH = BrokerId(1), BrokerEpoch(10), BrokerEpoch(11)
LOST, REFUSED = ConnectionResetError("reset"), ConnectionRefusedError("nobody listens")


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def doubted(clock):
    return DoubtedLeaders(clock)


@pytest.mark.parametrize(("error", "lasts_ms"), [(LOST, LOST_MS), (REFUSED, REFUSED_MS)])
def test_a_lost_or_refused_connection_is_a_doubt_for_a_while_and_only_the_first_one(
    doubted, clock, error, lasts_ms
):
    assert not doubted.has(LEADER, EPOCH)
    doubted.on_connection_error(LEADER, EPOCH, error)
    clock.now_ms += lasts_ms - 1
    doubted.on_connection_error(LEADER, EPOCH, error)
    assert doubted.has(LEADER, EPOCH)
    clock.now_ms += 1
    assert not doubted.has(LEADER, EPOCH)
    doubted.on_connection_error(LEADER, EPOCH, error)
    assert not doubted.has(LEADER, EPOCH)


def test_a_refusal_prolongs_the_doubt_of_a_lost_connection_but_not_the_other_way_round(doubted, clock):
    doubted.on_connection_error(LEADER, EPOCH, LOST)
    clock.now_ms += LOST_MS
    doubted.on_connection_error(LEADER, EPOCH, REFUSED)
    clock.now_ms += REFUSED_MS - 1
    assert doubted.has(LEADER, EPOCH)
    clock.now_ms += 1
    doubted.on_connection_error(LEADER, EPOCH, LOST)
    assert not doubted.has(LEADER, EPOCH)


def test_an_answer_ends_a_doubt_and_later_errors_count_again(doubted):
    doubted.on_connection_error(LEADER, EPOCH, REFUSED)
    doubted.on_answer(LEADER)
    assert not doubted.has(LEADER, EPOCH)
    doubted.on_connection_error(LEADER, EPOCH, LOST)
    assert doubted.has(LEADER, EPOCH)


def test_a_leader_has_refused_until_it_answers_however_long_ago(doubted, clock):
    doubted.on_connection_error(LEADER, EPOCH, LOST)
    assert not doubted.has_refused(LEADER, EPOCH), "it may only have closed a connection"
    doubted.on_connection_error(LEADER, EPOCH, REFUSED)
    clock.now_ms += 10 * REFUSED_MS
    assert doubted.has_refused(LEADER, EPOCH)
    assert not doubted.has_refused(LEADER, NEXT_EPOCH)
    doubted.on_answer(LEADER)
    assert not doubted.has_refused(LEADER, EPOCH)


@pytest.mark.parametrize("error", [TimeoutError("silent"), ConnectionAbortedError("closed by this side")])
def test_a_silent_leader_and_a_connection_that_this_side_ends_are_no_doubt(doubted, error):
    doubted.on_connection_error(LEADER, EPOCH, error)
    assert not doubted.has(LEADER, EPOCH)


def test_a_leader_that_started_again_is_not_doubted_for_errors_of_before(doubted, clock):
    doubted.on_connection_error(LEADER, EPOCH, REFUSED)
    assert not doubted.has(LEADER, NEXT_EPOCH)
    clock.now_ms += REFUSED_MS
    doubted.on_connection_error(LEADER, NEXT_EPOCH, REFUSED)
    assert doubted.has(LEADER, NEXT_EPOCH)
