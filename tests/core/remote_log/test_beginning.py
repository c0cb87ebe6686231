"""Whether a leader's log begins anew behind its history in the store, and what it knows there."""

import pytest

from sparklog.core.producers.producer_state import ProducerBatch, ProducerStates, Verdict
from sparklog.core.remote_log.beginning import begin_anew, must_begin_anew
from sparklog.core.remote_log.lineage import Lineage
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.transaction_end import TransactionEnd

EPOCHS = ((2, 0), (4, 250))
HISTORY = Lineage(4, 720, EPOCHS)
"""Of 720 offsets in the leader epochs 2 and 4; the last segment was copied in epoch 4."""


def decided(pairs: list[tuple[int, int]], end: int, start: int = 0) -> bool:
    return must_begin_anew(HISTORY, EpochHistory.of(pairs), log_start_offset=start, log_end_offset=end)


@pytest.mark.parametrize(
    ("pairs", "end"),
    [
        pytest.param([], 0, id="an empty disk"),
        pytest.param([(9, 0)], 0, id="an empty disk that led once without a record"),
        pytest.param([(2, 0), (4, 250)], 500, id="a lost tail"),
        pytest.param([(2, 0), (4, 250), (9, 500)], 500, id="a lost tail, and a later epoch without a record"),
        pytest.param([(2, 0)], 300, id="an old copy that ends in an epoch that ended earlier"),
        pytest.param([(2, 0), (3, 260)], 900, id="a longer log of a leader that was replaced"),
        pytest.param([(3, 0)], 900, id="a log that shares no epoch"),
    ],
)
def test_a_log_that_lacks_a_part_of_the_history_begins_anew(pairs: list[tuple[int, int]], end: int) -> None:
    assert decided(pairs, end)


@pytest.mark.parametrize(
    ("pairs", "end", "start"),
    [
        pytest.param([(2, 0), (4, 250)], 720, 0, id="it ends with the history"),
        pytest.param([(2, 0), (4, 250)], 900, 0, id="it goes on behind the history"),
        pytest.param([(2, 0), (4, 250), (9, 720)], 720, 0, id="it began anew there before"),
        pytest.param([(2, 0), (9, 100)], 101, 0, id="it has a record of a later epoch"),
        pytest.param([(4, 800)], 800, 800, id="what it lacks is deleted"),
    ],
)
def test_a_log_that_lacks_nothing_or_may_cut_the_history_goes_on(
    pairs: list[tuple[int, int]], end: int, start: int
) -> None:
    assert not decided(pairs, end, start)


def test_the_log_begins_at_the_history_s_end_with_its_epochs_from_the_log_start_on() -> None:
    beginning = begin_anew(720, 100, (*EPOCHS, (5, 730)), ProducerStates())
    assert (beginning.offset, beginning.history.log_start_offset) == (720, 100)
    assert beginning.history.epochs == ((2, 100), (4, 250)), "epoch 5 began behind a cut"


def batch(first: int, last: int, sequence: int, **more: object) -> ProducerBatch:
    fields = {
        "producer_id": 7, "producer_epoch": 0, "first_offset": first, "last_offset": last, "timestamp_ms": 1,
        "first_sequence": sequence, "last_sequence": sequence + last - first,
    }  # fmt: skip
    return ProducerBatch(**{**fields, **more})


def verdict(states: ProducerStates, one: ProducerBatch) -> Verdict:
    return states.check(one)


def test_a_batch_of_the_history_is_known_and_one_from_behind_its_end_is_new() -> None:
    states = ProducerStates()
    for one in (batch(700, 709, 0), batch(710, 719, 10), batch(720, 729, 20)):
        states.apply(one, 1)
    producers = begin_anew(720, 0, EPOCHS, states).producers
    assert type(verdict(producers, batch(0, 9, 10))).__name__ == "Duplicate"
    assert type(verdict(producers, batch(720, 729, 20))).__name__ == "Fresh"
    assert type(verdict(producers, batch(730, 739, 30))).__name__ == "RefusedSequence"


def test_a_transaction_whose_marker_was_lost_holds_back_no_reader() -> None:
    states = ProducerStates()
    states.apply(batch(700, 709, 0, is_transactional=True), 1)
    end = TransactionEnd(is_commit=True, coordinator_epoch=3)
    states.apply(batch(720, 720, -1, is_transactional=True, is_control=True, end=end), 1)
    assert states.transactions.first_open() is None
    open_at_end = ProducerStates()
    open_at_end.apply(batch(700, 709, 0, is_transactional=True), 1)
    producers = begin_anew(720, 0, EPOCHS, open_at_end).producers
    assert producers.transactions.first_open() is None
    assert not producers.producers[7].in_transaction
    producers.check_invariants()


def test_records_that_were_deleted_before_the_last_copy_do_not_return() -> None:
    """The copying leader's log had begun at 300; the head said 100 still."""
    beginning = begin_anew(720, 100, ((4, 300),), ProducerStates())
    assert beginning.history.log_start_offset == 300
    assert beginning.history.epochs == ((4, 300),)
