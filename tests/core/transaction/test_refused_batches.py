"""What was refused for a small ISR comes before what follows it, for a while."""

import pytest

from sparklog.core.transaction.producer_state import SEQUENCE_MAX, ProducerBatch
from sparklog.core.transaction.refused_batches import (
    REMEMBERED_MAX,
    REMEMBERED_MS,
    RefusedBatches,
    StrayBatches,
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


def test_a_replica_that_is_made_takes_over_what_was_refused_in_its_place():
    strays = StrayBatches()
    strays.note(QUAKES, batch(5), 1_000)
    strays.note(FLIGHTS, batch(7), 1_000)
    refused = RefusedBatches()
    refused.take_over(strays.take(QUAKES))
    assert strays.take(QUAKES) is None
    assert refused.is_before(batch(6), 1_001)
    assert not refused.is_before(batch(6), 1_000 + REMEMBERED_MS)


def test_what_a_replica_remembers_itself_goes_before_what_it_takes_over(refused):
    others = RefusedBatches()
    others.note(batch(7), 2_000)
    others.note(batch(7, producer_id=8), 2_000)
    refused.take_over(others)
    assert refused.is_before(batch(6), 2_001)
    assert refused.is_before(batch(8, producer_id=8), 2_001)


def test_what_no_replica_was_made_for_is_forgotten_in_time():
    strays = StrayBatches()
    strays.note(QUAKES, batch(5), 1_000)
    strays.note(FLIGHTS, batch(5), 1_000 + REMEMBERED_MS)
    assert list(strays.partitions) == [FLIGHTS]


def test_of_too_many_the_partitions_that_were_refused_longest_ago_are_forgotten():
    strays = StrayBatches()
    for number in range(REMEMBERED_MAX):
        strays.note(TopicPartition("quakes", number), batch(5), 1_000)
    strays.note(TopicPartition("quakes", 0), batch(5), 1_000)
    assert strays.take(TopicPartition("quakes", 1)) is not None
    for producer_id in (1, 2):
        strays.note(QUAKES, batch(5, producer_id=producer_id), 1_000)
    assert strays.take(TopicPartition("quakes", 2)) is None
    assert len(strays.take(QUAKES).batches) == 3
