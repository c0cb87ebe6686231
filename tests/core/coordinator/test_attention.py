"""A process that stood still, or was cut off, doubts its leader epochs until ZooKeeper has confirmed them."""

import pytest

from sparklog.core.coordinator.attention import Attention
from sparklog.model.errors import ErrorCode
from tests.core.coordinator.toy_machine import LIMIT_MS, SESSION_MS, WAIT_MS, Driven


@pytest.fixture
def shard():
    return Driven()


def test_a_pause_beyond_a_third_of_the_session_is_a_standstill():
    attention = Attention(SESSION_MS, 0)
    assert attention.standstills(LIMIT_MS) == 0
    assert attention.standstills(2 * LIMIT_MS + 1) == 1
    assert attention.standstills(2 * LIMIT_MS + 2) == 1


def test_a_clock_that_was_read_earlier_is_no_pause():
    attention = Attention(SESSION_MS, 0)
    attention.standstills(LIMIT_MS)
    attention.standstills(10)
    assert attention.standstills(2 * LIMIT_MS) == 0


def test_a_leader_that_is_cut_off_from_zookeeper_for_as_long_is_in_doubt_until_it_is_back():
    attention = Attention(SESSION_MS, 0)
    attention.on_disconnected(1_000)
    attention.on_disconnected(4_000)
    assert attention.standstills(4_000) == 0
    assert attention.standstills(1_000 + LIMIT_MS) == 0
    seen = {attention.standstills(1_000 + LIMIT_MS + passed) for passed in (1, 2, 3)}
    assert len(seen) == 3, "nothing that is confirmed meanwhile stays confirmed"
    attention.on_connected()
    assert attention.standstills(9_000) == max(seen)


def test_a_short_loss_of_the_connection_is_no_standstill():
    attention = Attention(SESSION_MS, 0)
    attention.on_disconnected(1_000)
    attention.on_connected()
    assert attention.standstills(LIMIT_MS) == 0


def test_a_new_shard_answers_only_after_its_epoch_was_confirmed():
    driven = Driven(is_active=False)
    driven.load()
    assert driven.confirmations == 1
    driven.ask(1, "g")
    assert driven.answers == {}
    driven.confirm()
    assert driven.answers == {1: None}


def test_a_request_that_meets_a_standstill_waits_for_the_confirmation(shard):
    shard.ask(1, "g", "old")
    shard.commit()
    shard.time(LIMIT_MS + 1, with_ticks=False)
    shard.ask(2, "g")
    shard.ask(3, "g", "new")
    assert (shard.confirmations, set(shard.answers)) == (2, {1})
    shard.confirm()
    assert shard.answers[2] == "old"
    assert shard.appended() == ["new"]


def test_requests_answered_from_ticks_that_noticed_the_pause_wait_as_well(shard):
    """The first event after a pause may be a tick; the request behind it must not slip through."""
    shard.now_ms += LIMIT_MS + 1
    shard.attention.standstills(shard.now_ms)
    shard.ask(1, "g")
    assert shard.answers == {}


def test_a_shard_that_is_not_confirmed_resigns_and_says_so(shard):
    shard.time(LIMIT_MS + 1, with_ticks=False)
    shard.ask(1, "g")
    shard.resign()
    assert shard.answers == {1: ErrorCode.not_coordinator}


def test_the_wait_for_a_confirmation_is_bounded(shard):
    shard.time(LIMIT_MS + 1, with_ticks=False)
    shard.ask(1, "g")
    assert shard.shard.next_deadline_ms() == shard.now_ms + WAIT_MS
    shard.time(WAIT_MS)
    assert shard.answers == {1: ErrorCode.coordinator_not_available}


def test_a_confirmation_from_before_another_standstill_does_not_count(shard):
    shard.time(LIMIT_MS + 1, with_ticks=False)
    shard.ask(1, "g")
    standstills = shard.attention.standstills(shard.now_ms)
    shard.now_ms += LIMIT_MS + 1
    shard._take(shard.shard.on_confirmed(standstills, shard.now))
    assert (shard.answers, shard.confirmations) == ({}, 3)
    shard.confirm()
    assert shard.answers == {1: None}


def test_members_do_not_expire_by_a_standstill_before_their_waiting_requests_are_heard(shard):
    shard.machine.deadline_ms = shard.now_ms + 1_000
    shard.time(LIMIT_MS + 1, with_ticks=False)
    assert (shard.machine.times, shard.confirmations) == ([], 2)
    assert shard.shard.next_deadline_ms() is None, "no timer turns while the confirmation is awaited"
    shard.ask(1, "g")
    shard.confirm()
    assert shard.shard.next_deadline_ms() == shard.machine.deadline_ms
    shard.time(0, with_ticks=False)
    assert shard.machine.times == [shard.now_ms]


def test_the_outcome_of_an_append_is_told_also_in_doubt_of_the_epoch(shard):
    """It was committed in this epoch, whoever leads now."""
    shard.ask(1, "g", "v")
    shard.time(LIMIT_MS + 1, with_ticks=False)
    shard.commit()
    assert shard.answers == {1: "done"}
