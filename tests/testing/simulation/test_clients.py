"""What a simulated producer may be told."""

from types import SimpleNamespace

import pytest

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.testing.simulation.clients import Producer
from sparklog.testing.simulation.invariants import Violation
from sparklog.testing.simulation.schedule import Schedule

TP = TopicPartition("quakes", 0)


@pytest.fixture
def truth():
    return SimpleNamespace(lossy_epoch=-1)


@pytest.fixture
def producer(truth):
    """Three of its batches are under way, over one connection."""
    place = SimpleNamespace(schedule=Schedule(), seed=1, witness=SimpleNamespace(truths={TP: truth}))
    producer = Producer(place, 1, TP, acks=-1, in_flight_max=5, interval_ms=10.0, records_max=1)
    producer._in_flight = 3
    producer._connections.add(object())
    producer._topics.append(truth)
    return producer


def test_who_skipped_nothing_may_not_be_told_of_a_gap(producer):
    with pytest.raises(Violation, match="GapsAreReal"):
        producer._refused(ErrorCode.out_of_order_sequence_number)


def test_who_is_refused_otherwise_sends_again(producer):
    producer._refused(ErrorCode.not_enough_replicas)
    assert producer._must_repeat


def test_a_gap_is_real_where_an_election_lost_records(producer, truth):
    truth.lossy_epoch = 3
    producer._refused(ErrorCode.out_of_order_sequence_number)
    assert producer._must_repeat


def test_a_gap_is_real_where_a_leader_was_trusted_alone(producer):
    producer.acks = 1
    producer._refused(ErrorCode.out_of_order_sequence_number)
    assert producer._must_repeat


@pytest.mark.parametrize("before", [None, SimpleNamespace(lossy_epoch=-1)], ids=["none yet", "another"])
def test_a_gap_is_real_where_batches_went_to_different_topics_of_one_name(producer, before):
    producer._topics.insert(0, before)
    producer._refused(ErrorCode.out_of_order_sequence_number)
    assert producer._must_repeat


def test_a_gap_may_be_real_where_a_connection_broke_under_what_was_in_front(producer):
    producer._connections.add(object())
    producer._refused(ErrorCode.out_of_order_sequence_number)
    assert producer._must_repeat
