"""What a simulated producer may be told."""

from types import SimpleNamespace

import pytest

from simulation.clients.idempotent_producers import Producer
from simulation.clients.plain_producers import PlainProducer
from simulation.invariants.invariant import Violation
from simulation.invariants.replication import AcknowledgedIsCommitted
from simulation.schedule import Schedule
from simulation.truth import Entry
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

TP = TopicPartition("quakes", 0)


@pytest.fixture
def truth():
    return SimpleNamespace(lossy_epoch=-1, state=SimpleNamespace(leader=2, leader_epoch=3))


@pytest.fixture
def producer(truth):
    """Two of its batches are under way to broker 2, over one connection."""
    place = SimpleNamespace(schedule=Schedule(), seed=1, witness=SimpleNamespace(truths={TP: truth}))
    producer = Producer(place, 1, TP, acks=-1, in_flight_max=5, interval_ms=10.0, records_max=1)
    producer.waiting.extend(SimpleNamespace(entry=number, in_flight=True, led_in=3) for number in range(2))
    producer._in_flight = 2
    producer._connections.add(object())
    producer._topics.append(truth)
    return producer


def refuse(producer, error=ErrorCode.out_of_order_sequence_number):
    producer._refused(producer.waiting[1], error)


def test_who_skipped_nothing_may_not_be_told_of_a_gap(producer):
    with pytest.raises(Violation, match="GapsAreReal"):
        refuse(producer)


def test_who_is_refused_otherwise_sends_again(producer):
    refuse(producer, ErrorCode.not_enough_replicas)
    assert producer._must_repeat


def test_a_gap_is_real_where_an_election_lost_records(producer, truth):
    truth.lossy_epoch = 3
    refuse(producer)
    assert producer._must_repeat


def test_a_gap_is_real_where_a_leader_was_trusted_alone(producer):
    producer.acks = 1
    refuse(producer)
    assert producer._must_repeat


@pytest.mark.parametrize(
    ("led_in", "leader_epoch"),
    [
        pytest.param(3, 4, id="in the epoch before"),
        pytest.param(1, 3, id="in an earlier epoch, and elected again: seed 867014"),
        pytest.param(-1, 3, id="in no epoch, as another process has its place: seed 866648"),
    ],
)
def test_a_gap_is_real_to_a_leader_that_was_replaced_and_has_not_heard_of_it(
    led_in, leader_epoch, producer, truth
):
    producer.waiting[1].led_in = led_in
    truth.state.leader_epoch = leader_epoch
    refuse(producer)
    assert producer._must_repeat


@pytest.mark.parametrize("before", [None, SimpleNamespace(lossy_epoch=-1)], ids=["none yet", "another"])
def test_a_gap_is_real_where_batches_went_to_different_topics_of_one_name(producer, before):
    producer._topics.insert(0, before)
    refuse(producer)
    assert producer._must_repeat


def test_a_gap_may_be_real_where_a_connection_broke_under_what_was_in_front(producer):
    producer._connections.add(object())
    refuse(producer)
    assert producer._must_repeat


def test_what_was_given_up_may_be_behind_a_gap(producer):
    given_up = producer.waiting.pop()
    producer._refused(given_up, ErrorCode.out_of_order_sequence_number)
    assert producer._must_repeat


# ---- producers without idempotence ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("acks", "outcome", "is_same_topic", "is_shown"),
    [
        pytest.param(-1, "ok", True, True, id="acknowledged with acks=all"),
        pytest.param(1, "ok", True, False, id="acknowledged by a leader alone"),
        pytest.param(-1, "info", True, False, id="refused"),
        pytest.param(-1, "ok", False, False, id="its topic is another one by now"),
    ],
)
def test_what_a_plain_producer_is_told_is_shown_to_the_witness(acks, outcome, is_same_topic, is_shown, truth):
    shown = []
    witness = SimpleNamespace(truths={TP: truth}, on_ack=lambda *what: shown.append(what))
    place = SimpleNamespace(schedule=Schedule(), seed=1, witness=witness)
    producer = PlainProducer(place, "plain-1", TP, acks=acks, interval_ms=10.0)
    record = SimpleNamespace(outcome=outcome, entry="the batch", offset=7)
    producer._show(record, truth if is_same_topic else SimpleNamespace())
    assert shown == ([(truth, "the batch", 7)] if is_shown else [])


def test_a_plain_send_is_acknowledged_where_it_is_committed_and_nowhere_else(truth):
    sent = Entry(0, 1, -1, -1, -1, -1, 0xABC)
    truth.topic_partition, truth.lost = TP, {}
    committed = {7: sent._replace(base_offset=7, next_offset=8, leader_epoch=2)}
    truth.committed_at = committed.get
    AcknowledgedIsCommitted().on_ack(truth, sent, 7)
    with pytest.raises(
        Violation, match="a producer was told that its batch of CRC 0xabc is at offset 8, where"
    ):
        AcknowledgedIsCommitted().on_ack(truth, sent, 8)


# ---- patience ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("invoked_us", "has_lost"),
    [
        pytest.param(-1, False, id="it was not sent yet"),
        pytest.param(0, True, id="it was sent long ago"),
        pytest.param(900_000, False, id="it was sent a moment ago"),
    ],
)
def test_an_impatient_producer_waits_for_so_long_only(producer, invoked_us, has_lost):
    producer._patience_us = 500_000
    producer._place.schedule.now_us = 1_000_000
    producer.waiting[0].record = SimpleNamespace(invoked_us=invoked_us)
    assert producer._has_lost_patience() is has_lost


def test_who_waits_for_nothing_has_patience(producer):
    producer.waiting.clear()
    producer._patience_us = 0
    assert not producer._has_lost_patience()


def test_who_gives_up_hangs_up(producer):
    ended = []
    producer._connections.clear()
    for number in (2, 1):
        producer._connections.add(
            SimpleNamespaceThatHashes(number=number, fail=lambda why, number=number: ended.append(number))
        )
    producer._hang_up()
    assert ended == [1, 2]


class SimpleNamespaceThatHashes(SimpleNamespace):
    __hash__ = object.__hash__
