"""A coordinator answers in a leader epoch that ZooKeeper has confirmed since its process last stood still."""

import uuid

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.loops import Await, Pause

STANDSTILL_MS = 6_001
NOT_COORDINATOR = ErrorCode.not_coordinator


@pytest.fixture
def serving(coordinated):
    coordinated.serve()
    coordinated.commit(7)
    coordinated.follow()
    return coordinated


def stand_still(coordinated):
    """The process is paused: its clock goes on, and its timers do not."""
    coordinated.clock.now_ms += STANDSTILL_MS


def test_after_a_standstill_a_request_is_answered_once_the_epoch_is_confirmed(serving):
    stand_still(serving)
    answers = serving.committed()
    assert answers == []
    serving.confirm()
    assert answers == [{"events": 7}]
    assert serving.committed() == [{"events": 7}], "and the next one at once"


def test_a_coordinator_that_slept_through_an_election_answers_nothing_old(serving):
    stand_still(serving)
    serving.decide(leader=2, epoch=2)
    answers = serving.committed()
    serving.confirm()
    assert answers == [NOT_COORDINATOR]
    assert serving.commit(8) == [NOT_COORDINATOR]


@pytest.mark.parametrize(
    "decision", [{"epoch": 2}, {"topic_id": uuid.UUID(int=3)}], ids=["epoch", "topic of the same name"]
)
def test_the_same_leader_in_another_epoch_or_topic_is_another_coordinator(serving, decision):
    stand_still(serving)
    serving.decide(**decision)
    answers = serving.committed()
    serving.confirm()
    assert answers == [NOT_COORDINATOR]


def test_a_role_that_zookeeper_has_overtaken_never_serves(coordinated):
    """The message that made this broker the leader was under way for long."""
    coordinated.become(epoch=1, leader=1)
    coordinated.decide(leader=2, epoch=2)
    coordinated.follow()
    coordinated.load()
    answers = coordinated.committed()
    coordinated.confirm()
    assert answers == [NOT_COORDINATOR]


def test_while_zookeeper_is_silent_requests_wait_for_a_bounded_time(serving, caplog):
    stand_still(serving)
    serving.zookeeper.lose_connection()
    answers = serving.committed()
    assert isinstance(serving.confirm(), Pause)
    assert "cannot confirm their leader epochs" in caplog.text
    serving.time(5_000)
    assert answers == [ErrorCode.coordinator_not_available]
    later = serving.committed()
    serving.zookeeper.restore_connection()
    serving.coordinators._on_session("connected")
    serving.confirm(times_out=True)
    assert later == [{"events": 7}]


def test_a_coordinator_that_is_cut_off_from_zookeeper_for_long_answers_nothing(serving):
    serving.coordinators._on_session("suspended")
    for _ in range(7):
        serving.time(1_000)
    answers = serving.committed()
    serving.confirm()
    assert answers == []
    serving.coordinators._on_session("connected")
    serving.confirm(times_out=True)
    assert answers == [{"events": 7}]


def test_a_short_loss_of_the_connection_changes_nothing(serving):
    serving.coordinators._on_session("suspended")
    serving.time(1_000)
    assert serving.committed() == [{"events": 7}]


def test_the_clock_is_looked_at_while_nobody_asks(serving):
    for _ in range(10):
        serving.time(1_500)
    assert serving.committed() == [{"events": 7}], "no pause was longer than that"


def test_the_loop_of_confirmations_rests_while_none_is_asked_for(serving):
    assert isinstance(serving.confirm(), Await)
