"""Dialogues with a shard: requests, appends and their outcomes, held keys, and its end."""

import pytest

from sparklog.core.coordinator.shard import Committed, MayBeCommitted, NotAppended
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NO_TOPIC_ID, NamedTopic
from tests.core.coordinator.toy_machine import BATCH_BYTES, WAIT_MS, Driven

TIMED_OUT = ErrorCode.request_timed_out
NOT_AVAILABLE = ErrorCode.coordinator_not_available
NOT_COORDINATOR = ErrorCode.not_coordinator


@pytest.fixture
def shard():
    return Driven()


# Life


def test_a_loading_shard_answers_with_what_each_request_says_for_it():
    driven = Driven(is_active=False)
    assert driven.ask(1, "g") == "loading"
    assert driven.ask(2, "g", "v") == "loading"
    assert driven.appends == []


def test_an_invalid_request_is_refused_in_every_phase(shard):
    assert Driven(is_active=False).ask(1, "g", is_invalid=True) == "invalid"
    assert shard.ask(1, "g", is_invalid=True) == "invalid"
    shard.resign()
    assert shard.ask(2, "g", is_invalid=True) == "invalid"


def test_a_resigned_shard_refuses_and_every_later_fact_is_void(shard):
    shard.ask(1, "g", "old")
    shard.resign()
    assert shard.answers == {1: NOT_COORDINATOR}
    assert shard.ask(2, "g") is NOT_COORDINATOR
    shard.outcome(Committed(1))
    shard.high_watermark(9)
    shard.load()
    shard.confirm()
    shard.time(10_000)
    shard.resign()
    assert shard.answers == {1: NOT_COORDINATOR, 2: NOT_COORDINATOR}


@pytest.mark.kafka_bug(
    "K31",
    "KAFKA-9307",
    "The ZooKeeper session ended during a role change; a group coordinator loaded forever.",
)
def test_kafka_9307_a_load_that_ends_after_the_resignation_makes_no_coordinator():
    """The load of an epoch that is over would otherwise bring its coordinator back."""
    driven = Driven(is_active=False)
    driven.resign()
    driven.load()
    driven.confirm()
    assert driven.ask(1, "g") is NOT_COORDINATOR
    assert not driven.machine.is_loaded


def test_a_resigning_shard_answers_every_request_once_wherever_it_waits(shard):
    shard.ask(1, "held", "v", holds=True)
    shard.ask(2, "held")
    shard.time(7_000, with_ticks=False)
    shard.ask(3, "other")
    shard.resign()
    assert {token: shard.answers[token] for token in (1, 3)} == {1: NOT_COORDINATOR, 3: NOT_COORDINATOR}
    assert set(shard.answers) == {1, 2, 3}


# Appends


def test_one_append_is_in_flight_and_the_next_batch_is_what_arrived_meanwhile(shard):
    for token, value in enumerate("abcd", start=1):
        shard.ask(token, value, value)
    assert [shard.appended(), len(shard.appends), shard.answers] == [["a"], 1, {}]
    shard.commit()
    assert shard.answers == {1: "done"}
    assert shard.appended() == ["b", "c", "d"]
    shard.commit()
    assert shard.answers == {1: "done", 2: "done", 3: "done", 4: "done"}
    assert len(shard.appends) == 2


def test_a_batch_stays_within_the_topic_s_largest_and_no_write_is_split(shard):
    for token, key in enumerate("abcde", start=1):
        shard.ask(token, key, "v" * 400)
    for _ in range(3):
        shard.commit()
    assert [len(append.records) for append in shard.appends] == [1, 2, 2]


def test_a_write_that_alone_is_too_large_is_refused_and_the_others_go_on(shard):
    assert shard.ask(1, "g", "v" * BATCH_BYTES) is ErrorCode.message_too_large
    shard.ask(2, "g", "small")
    shard.commit()
    assert shard.answers[2] == "done"


def test_a_write_that_its_format_has_no_room_for_is_refused(shard):
    assert shard.ask(1, "g", "unwritable") is ErrorCode.message_too_large
    assert shard.appends == []


def test_a_refused_append_is_final_and_the_next_one_follows(shard):
    shard.ask(1, "a", "1")
    shard.ask(2, "b", "2")
    shard.outcome(NotAppended(ErrorCode.not_enough_replicas))
    assert shard.answers == {1: ErrorCode.not_enough_replicas}
    assert shard.appended() == ["2"]
    assert shard.ask(3, "a") is None


def test_an_outcome_that_arrives_twice_counts_once(shard):
    shard.ask(1, "a", "1")
    shard.ask(2, "b", "2")
    shard.commit()
    shard.outcome(Committed(1), append=0)
    assert shard.answers == {1: "done"}


# Held keys


def test_requests_of_a_held_key_wait_in_order_and_others_do_not(shard):
    shard.ask(1, "g", "generation", holds=True)
    assert shard.ask(2, "g") is None
    shard.ask(3, "g", "later")
    shard.ask(4, "g")
    assert shard.ask(5, "other") is None
    assert list(shard.answers) == [5]
    shard.commit()
    assert (shard.answers[2], shard.answers[4]) == ("generation", "generation")
    shard.commit()
    assert shard.answers[3] == "done"


def test_a_waiting_request_that_holds_the_key_again_keeps_those_behind_it_waiting(shard):
    shard.ask(1, "g", "first", holds=True)
    shard.ask(2, "g", "second", holds=True)
    shard.ask(3, "g")
    shard.commit()
    assert 3 not in shard.answers
    shard.commit()
    assert shard.answers[3] == "second"


def test_a_request_without_a_key_waits_for_no_held_key(shard):
    shard.ask(1, "g", "generation", holds=True)
    shard.ask(2, None)
    assert 2 in shard.answers


def test_a_request_that_waited_too_long_is_refused_and_never_reaches_the_machine(shard):
    shard.ask(1, "g", "generation", holds=True)
    shard.ask(2, "g", "too late")
    assert shard.shard.next_deadline_ms() == shard.now_ms + WAIT_MS
    shard.time(WAIT_MS)
    assert shard.answers == {2: NOT_AVAILABLE}
    shard.commit()
    assert shard.machine.values == {"g": "generation"}
    assert len(shard.appends) == 1


# Doubt


def in_doubt(shard, *, key="g", error=TIMED_OUT):
    shard.ask(1, key, "doubtful")
    shard.outcome(MayBeCommitted(error, 1))


def test_a_write_in_doubt_is_answered_now_and_neither_applied_nor_forgotten(shard):
    in_doubt(shard)
    assert shard.answers == {1: TIMED_OUT}
    assert shard.machine.values == {}
    assert shard.shard.writes_in_doubt == 1
    shard.high_watermark(1)
    assert shard.machine.values == {"g": "doubtful"}
    assert shard.shard.writes_in_doubt == 0


def test_requests_of_a_key_in_doubt_wait_until_the_high_watermark_passes(shard):
    in_doubt(shard)
    assert shard.ask(2, "g") is None
    assert 2 not in shard.answers
    assert shard.ask(3, "other") is None
    assert 3 in shard.answers
    shard.high_watermark(0)
    assert 2 not in shard.answers
    shard.high_watermark(1)
    assert shard.answers[2] == "doubtful"


def test_a_later_append_that_is_committed_settles_the_earlier_doubt_first(shard):
    in_doubt(shard)
    shard.ask(2, "other", "certain")
    shard.outcome(Committed(2))
    assert list(shard.machine.values) == ["g", "other"]
    assert shard.shard.writes_in_doubt == 0


def test_appends_go_on_behind_a_doubt_and_are_settled_in_order(shard):
    in_doubt(shard)
    shard.ask(2, "h", "also doubtful")
    shard.outcome(MayBeCommitted(ErrorCode.not_enough_replicas_after_append, 2))
    shard.high_watermark(1)
    assert shard.machine.values == {"g": "doubtful"}
    shard.high_watermark(2)
    assert shard.machine.values == {"g": "doubtful", "h": "also doubtful"}


def test_a_held_key_stays_held_once_while_its_write_is_in_doubt(shard):
    shard.ask(1, "g", "generation", holds=True)
    shard.outcome(MayBeCommitted(TIMED_OUT, 1))
    shard.ask(2, "g")
    shard.high_watermark(1)
    assert shard.answers[2] == "generation"
    assert shard.ask(3, "g") == "generation"


def test_a_write_that_the_disk_may_have_stays_in_doubt_until_the_epoch_ends(shard):
    shard.ask(1, "g", "torn")
    shard.outcome(MayBeCommitted(ErrorCode.kafka_storage_error, None))
    assert not shard.shard.has_doubt_to_settle
    shard.high_watermark(100)
    assert shard.machine.values == {}
    shard.ask(2, "g")
    shard.resign()
    assert shard.answers[2] is NOT_COORDINATOR


# Time and topics


def test_the_machine_s_time_comes_at_its_deadline(shard):
    shard.machine.deadline_ms = shard.now_ms + 2_000
    assert shard.shard.next_deadline_ms() == shard.machine.deadline_ms
    shard.time(1_000)
    assert shard.machine.times == []
    shard.time(1_000)
    assert shard.machine.times == [shard.now_ms]


def test_an_active_shard_is_told_of_deleted_topics_and_a_loading_one_is_not(shard):
    loading = Driven(is_active=False)
    for driven in (shard, loading):
        driven.shard.on_topics_deleted([NamedTopic("t", NO_TOPIC_ID)], driven.now)
    assert (shard.machine.gone, loading.machine.gone) == ([NamedTopic("t", NO_TOPIC_ID)], [])
