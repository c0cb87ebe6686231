"""What was refused for a small ISR comes before what follows it, for a while."""

import pytest

from sparklog.core.transaction.producer_state import ProducerBatch
from sparklog.core.transaction.refused_batches import REMEMBERED_MAX, REMEMBERED_MS, RefusedBatches


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
        (batch(6, producer_id=8), False),
        (batch(0, epoch=1), False),
    ],
)
def test_it_is_before_other_batches_of_its_producer_and_epoch(refused, other, is_before):
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


def test_of_several_that_are_refused_one_after_the_other_the_first_counts(refused):
    refused.note(batch(6), 1_001)
    assert not refused.is_before(batch(5), 1_002)
    assert refused.is_before(batch(6), 1_002)


def test_after_a_while_or_in_another_epoch_another_one_counts():
    refused = RefusedBatches()
    refused.note(batch(5), 1_000)
    refused.note(batch(6), 1_000 + REMEMBERED_MS)
    assert not refused.is_before(batch(6), 1_001 + REMEMBERED_MS)
    refused.note(batch(0, epoch=1), 1_002 + REMEMBERED_MS)
    assert refused.is_before(batch(1, epoch=1), 1_003 + REMEMBERED_MS)


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
