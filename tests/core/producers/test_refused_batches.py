"""What was refused for a small ISR comes before what follows it, for a while."""

import pytest

from sparklog.core.producers.producer_state import SEQUENCE_MAX, ProducerBatch
from sparklog.core.producers.refused_batches import (
    CONNECTIONS_MAX,
    REFUSALS_MAX,
    REMEMBERED_MAX,
    REMEMBERED_MS,
    UNDER_WAY_MAX,
    RefusedBatches,
    RefusingConnections,
)
from sparklog.model.ids import TopicPartition


def batch(first_sequence, *, producer_id=9, epoch=0):
    return ProducerBatch(
        producer_id=producer_id,
        producer_epoch=epoch,
        first_sequence=first_sequence,
        last_sequence=first_sequence,
        first_offset=0,
        last_offset=0,
        timestamp_ms=0,
    )


@pytest.fixture
def refused():
    """Producer 9 was refused its batch 5 at 1,000 ms."""
    refused = RefusedBatches()
    refused.note(batch(5), 1_000)
    return refused


@pytest.mark.parametrize(
    ("other", "is_before"),
    [
        (batch(6), True),
        (batch(5), False),
        (batch(4), False),
        (batch(0), False),
        (batch(6, producer_id=8), False),
        (batch(0, epoch=1), False),
    ],
)
def test_it_is_before_later_batches_of_its_producer_and_epoch(refused, other, is_before):
    assert refused.is_before(other, 1_001) is is_before


def test_it_is_before_nothing_any_more_once_nothing_can_be_under_way(refused):
    assert refused.is_before(batch(6), 1_000 + REMEMBERED_MS - 1)
    assert not refused.is_before(batch(6), 1_000 + REMEMBERED_MS)


def test_whoever_goes_on_is_forgotten(refused):
    refused.forget(9)
    refused.forget(9)
    assert not refused.is_before(batch(7), 1_001)


def test_a_batch_that_is_refused_once_more_counts_from_then_on(refused):
    refused.note(batch(5), 20_000)
    assert refused.is_before(batch(6), 1_000 + REMEMBERED_MS)


@pytest.mark.parametrize(("earlier", "later"), [(5, 6), (SEQUENCE_MAX, 0), (SEQUENCE_MAX - 1, 3)])
@pytest.mark.parametrize("in_order", [True, False])
def test_of_several_that_are_refused_the_earliest_by_sequence_counts(earlier, later, in_order):
    refused = RefusedBatches()
    for sequence in (earlier, later) if in_order else (later, earlier):
        refused.note(batch(sequence), 1_000)
    assert not refused.is_before(batch(earlier), 1_001)
    assert refused.is_before(batch(later), 1_001)


def test_it_is_before_what_follows_for_as_long_as_more_is_refused(refused):
    refused.note(batch(7), 1_000 + REMEMBERED_MS - 1)
    assert not refused.is_before(batch(5), 1_000 + REMEMBERED_MS)
    assert refused.is_before(batch(6), 1_000 + REMEMBERED_MS)


def test_after_a_while_another_one_counts(refused):
    refused.note(batch(6), 1_000 + REMEMBERED_MS)
    assert not refused.is_before(batch(6), 1_001 + REMEMBERED_MS)


def test_a_later_epoch_counts_and_an_earlier_one_does_not_any_more(refused):
    refused.note(batch(0, epoch=1), 1_001)
    refused.note(batch(5), 1_002)
    assert refused.is_before(batch(1, epoch=1), 1_003)
    assert not refused.is_before(batch(6), 1_003)


def test_who_is_refused_once_more_is_not_the_first_to_be_forgotten(refused):
    refused.note(batch(1, producer_id=8), 2_000)
    refused.note(batch(5), 3_000)
    refused.forget_what_is_old(2_000 + REMEMBERED_MS)
    assert list(refused.batches) == [9]


def test_no_more_are_remembered_than_there_is_room_for_and_the_earliest_go_first():
    refused = RefusedBatches()
    for producer_id in range(REMEMBERED_MAX + 1):
        refused.note(batch(5, producer_id=producer_id), 1_000)
    assert len(refused.batches) == REMEMBERED_MAX
    assert not refused.is_before(batch(6, producer_id=0), 1_001)
    assert refused.is_before(batch(6, producer_id=REMEMBERED_MAX), 1_001)


def test_what_is_old_goes_when_another_comes(refused):
    refused.note(batch(1, producer_id=8), 1_000 + REMEMBERED_MS)
    assert list(refused.batches) == [8]


QUAKES, FLIGHTS = TopicPartition("quakes", 0), TopicPartition("flights", 0)


@pytest.fixture
def connections():
    """On connection 3 a batch of quakes was refused."""
    connections = RefusingConnections()
    connections.note(3, QUAKES)
    return connections


@pytest.mark.parametrize(
    ("connection_id", "of", "is_so"), [(3, QUAKES, True), (4, QUAKES, False), (3, FLIGHTS, False)]
)
def test_a_refusal_counts_on_its_connection_for_its_partition(connections, connection_id, of, is_so):
    connections.on_request(connection_id)
    assert connections.has_refused(connection_id, of) is is_so


def come(connections, requests):
    for _ in range(requests):
        connections.on_request(3)


def test_a_refusal_counts_until_nothing_can_be_under_way_that_was_sent_before_it_was_told(connections):
    come(connections, UNDER_WAY_MAX)
    assert connections.has_refused(3, QUAKES)
    come(connections, 1)
    assert not connections.has_refused(3, QUAKES)


def test_a_refusal_counts_from_the_last_one_on(connections):
    come(connections, UNDER_WAY_MAX)
    connections.note(3, QUAKES)
    come(connections, UNDER_WAY_MAX)
    assert connections.has_refused(3, QUAKES)


def test_each_partition_counts_for_itself(connections):
    come(connections, 1)
    connections.note(3, FLIGHTS)
    come(connections, UNDER_WAY_MAX)
    assert connections.has_refused(3, FLIGHTS)
    assert not connections.has_refused(3, QUAKES)


def test_a_connection_on_which_nothing_was_refused_lately_takes_no_memory(connections):
    connections.on_request(4)
    assert list(connections.connections) == [3]
    come(connections, UNDER_WAY_MAX + 1)
    assert not connections.connections


def test_of_too_many_partitions_of_a_connection_the_earliest_are_forgotten(connections):
    for number in range(1, REFUSALS_MAX):
        connections.note(3, TopicPartition("flights", number))
    connections.note(3, QUAKES)
    connections.note(3, FLIGHTS)
    assert connections.has_refused(3, QUAKES)
    assert not connections.has_refused(3, TopicPartition("flights", 1))


def test_of_too_many_connections_the_earliest_are_forgotten(connections):
    for number in range(CONNECTIONS_MAX):
        connections.note(10 + number, QUAKES)
    assert len(connections.connections) == CONNECTIONS_MAX
    assert not connections.has_refused(3, QUAKES)
