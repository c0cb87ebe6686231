"""Partitions that a consumer leaves out of its fetches, because it still has records of them."""

import pytest

from sparklog.broker.waiting.left_out import WAIT_FIRST_MS, LeftOut
from sparklog.model.parts import read_parts
from tests.broker.conftest import TOPIC_ID
from tests.broker.waiting.test_session_partitions import Follower, append, become

ASKED_MS = 500
A, B, C = (("", TOPIC_ID, number) for number in range(3))


def waits_ms(left_out, *fetches):
    """How long each fetch may wait, by what it names; no answer has records."""
    return [left_out.on_fetch(named, ASKED_MS) for named in fetches]


@pytest.fixture
def left_out():
    """B had records in the last answer."""
    made = LeftOut()
    made.on_records([B])
    return made


def test_a_fetch_waits_as_long_as_it_asks_where_nothing_is_left_out(left_out) -> None:
    assert waits_ms(left_out, (B,), (), (A,)) == [ASKED_MS] * 3
    assert waits_ms(LeftOut(), (A,), ()) == [ASKED_MS] * 2


def test_a_fetch_that_leaves_out_what_had_records_waits_shortly(left_out) -> None:
    assert waits_ms(left_out, (A,)) == [WAIT_FIRST_MS]


def test_each_further_one_waits_twice_as_long_until_the_client_is_in_no_hurry(left_out) -> None:
    assert waits_ms(left_out, *[()] * 9) == [5, 10, 20, 40, 80, 160, 320, ASKED_MS, ASKED_MS]


def test_a_client_that_gets_on_is_answered_shortly_again(left_out) -> None:
    left_out.on_records([B, C])
    assert waits_ms(left_out, (), (), (), (C,), (), (B,)) == [5, 10, 20, 5, 10, ASKED_MS]
    left_out.on_records([B])
    assert waits_ms(left_out, ()) == [5]


def test_a_busy_partition_makes_no_stream_of_answers_beside_one_that_is_paused(left_out) -> None:
    found = []
    for _ in range(9):
        found += waits_ms(left_out, (A,))
        left_out.on_records([A])
    assert found == [5, 10, 20, 40, 80, 160, 320, ASKED_MS, ASKED_MS]


@pytest.mark.parametrize("asked_ms", [0, WAIT_FIRST_MS])
def test_no_fetch_waits_longer_than_it_asks(left_out, asked_ms) -> None:
    assert left_out.on_fetch((), asked_ms) == asked_ms


class Consumer(Follower):
    """Reads partitions 0 and 1."""

    replica_id, session_partitions = -1, (0, 1)


@pytest.fixture
def leader(members, batch):
    """Partition 0 is at its end, 1 has three records."""
    become(members[1], isr=(1,))
    for _ in range(3):
        append(members[1], 1, batch())
    return members[1]


def with_bytes(fetcher):
    return [number for number, data in fetcher.answers[-1].items() if read_parts(data.records)]


def waiting_ms(leader):
    """The longest waits of the fetches that wait."""
    return [one.delay_ms for one in leader.timer.waiting]


def test_a_consumer_can_soon_ask_again_for_a_partition_that_it_has_left_out(leader) -> None:
    """Otherwise it gets one answer's records of it each half second."""
    consumer = Consumer(leader)
    consumer.fetch()
    assert with_bytes(consumer) == [1]
    consumer.fetch(forget=[1])
    assert waiting_ms(leader) == [WAIT_FIRST_MS]
    leader.timer.fire()
    consumer.offsets[1] = 1
    consumer.fetch(1)
    assert with_bytes(consumer) == [1]
    consumer.fetch(forget=[1])
    assert waiting_ms(leader) == [WAIT_FIRST_MS]


def test_a_consumer_at_the_end_of_all_waits_as_long_as_it_asks(leader) -> None:
    consumer = Consumer(leader)
    consumer.fetch()
    consumer.offsets[1] = 3
    consumer.fetch(1)
    assert waiting_ms(leader) == [ASKED_MS]


def test_a_follower_waits_as_long_as_it_asks(leader) -> None:
    follower = Follower(leader)
    follower.fetch()
    assert with_bytes(follower) == [1]
    follower.fetch(forget=[1])
    assert waiting_ms(leader) == [ASKED_MS]
