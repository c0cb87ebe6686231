"""Epoch history, told as the situations in which Kafka's replicas lost or forked records."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.core.replication.epoch_history import UNDEFINED, EpochHistory


def test_a_new_history_knows_no_epoch() -> None:
    history = EpochHistory()
    assert history.latest_epoch == -1
    assert history.end_offset_for(0, 10) == UNDEFINED
    assert history.end_offset_for(-1, 10) == UNDEFINED


def test_the_latest_epoch_ends_at_the_log_end() -> None:
    assert EpochHistory.of([(1, 0), (3, 10)]).end_offset_for(3, 25) == (3, 25)


def test_an_older_epoch_ends_where_the_next_one_begins() -> None:
    assert EpochHistory.of([(1, 0), (3, 10)]).end_offset_for(1, 25) == (1, 10)


def test_an_epoch_that_never_was_is_answered_with_the_one_before_it() -> None:
    assert EpochHistory.of([(1, 0), (3, 10), (6, 20)]).end_offset_for(5, 25) == (3, 20)


@pytest.mark.parametrize(("epoch", "offset"), [(1, 0), (2, 10), (3, 10), (4, 20), (6, 20)])
def test_all_before_an_epoch_end_where_it_or_the_next_one_begins(epoch: int, offset: int) -> None:
    assert EpochHistory.of([(1, 0), (3, 10), (6, 20)]).end_before(epoch) == offset


def test_an_epoch_older_than_the_first_ends_where_the_first_begins() -> None:
    assert EpochHistory.of([(4, 7), (5, 10)]).end_offset_for(2, 25) == (2, 7)


def test_a_future_epoch_is_undefined() -> None:
    assert EpochHistory.of([(1, 0)]).end_offset_for(2, 25) == UNDEFINED


def test_assigning_the_epoch_in_force_changes_nothing() -> None:
    history = EpochHistory.of([(1, 0)])
    assert not history.assign(1, 5)
    assert history.entries == [(1, 0)]


@pytest.mark.scenario("S25")
def test_a_leader_that_appends_nothing_still_leaves_its_epoch_behind() -> None:
    """KAFKA-7415: a follower that asks about epoch 3 must not hear "unknown" from the leader of epoch 4."""
    history = EpochHistory.of([(2, 0), (3, 8)])
    assert history.assign(4, 12)
    assert history.end_offset_for(3, 12) == (3, 12)
    assert history.end_offset_for(4, 12) == (4, 12)


def test_a_second_leader_at_the_same_offset_replaces_the_empty_epoch() -> None:
    history = EpochHistory.of([(1, 0), (2, 10)])
    assert history.assign(3, 10)
    assert history.entries == [(1, 0), (3, 10)]


def test_an_earlier_start_of_the_same_epoch_wins() -> None:
    history = EpochHistory.of([(1, 0), (2, 10)])
    assert history.assign(2, 5)
    assert history.entries == [(1, 0), (2, 5)]


def test_entries_that_contradict_a_new_one_are_dropped() -> None:
    history = EpochHistory.of([(1, 0), (4, 10), (6, 20)])
    assert history.assign(3, 15)
    assert history.entries == [(1, 0), (3, 15)]


@pytest.mark.parametrize(("epoch", "start"), [(-1, 0), (0, -1)])
def test_negative_epochs_and_offsets_are_refused(epoch: int, start: int) -> None:
    with pytest.raises(ValueError, match="negative"):
        EpochHistory().assign(epoch, start)


@pytest.mark.parametrize("pairs", [[(1, 0), (1, 5)], [(1, 5), (2, 5)], [(2, 0), (1, 5)], [(-1, 0)]])
def test_pairs_that_do_not_grow_are_no_history(pairs: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="does not grow"):
        EpochHistory.of(pairs)


@pytest.mark.scenario("S50")
def test_truncation_prunes_an_epoch_that_begins_at_the_cut() -> None:
    """KAFKA-10706: a conflicting entry at the log's end would be reported as diverging for ever."""
    history = EpochHistory.of([(1, 0), (2, 10)])
    assert history.truncate_to(10)
    assert history.entries == [(1, 0)]
    assert not history.truncate_to(10)


def test_trimming_moves_the_covering_epoch_to_the_new_start() -> None:
    history = EpochHistory.of([(1, 0), (2, 10), (3, 20)])
    assert history.trim_to(15)
    assert history.entries == [(2, 15), (3, 20)]
    assert not history.trim_to(15)
    assert not history.trim_to(5)


def test_a_copy_lives_its_own_life() -> None:
    history = EpochHistory.of([(1, 0)])
    copied = history.copy()
    copied.assign(2, 5)
    assert history.entries == [(1, 0)]


@pytest.mark.bug("B84")
@pytest.mark.parametrize(
    ("pairs", "end", "epoch"),
    [
        pytest.param([], 0, -1, id="never written"),
        pytest.param([(7, 0)], 0, -1, id="led without a record"),
        pytest.param([(4, 0)], 500, 4, id="records of one epoch"),
        pytest.param([(4, 0), (7, 500)], 500, 4, id="led without a record behind others' records"),
        pytest.param([(4, 0), (7, 500)], 501, 7, id="led with a record"),
        pytest.param([], 100, -1, id="began anew and has no record yet"),
        pytest.param([(4, 500)], 500, 4, id="emptied by retention"),
    ],
)
def test_the_epoch_of_the_last_record_is_no_epoch_that_was_only_noted(pairs, end, epoch):
    assert EpochHistory.of(pairs).epoch_of_last_record(end) == epoch


@pytest.mark.parametrize(("lost_in_epoch", "epoch"), [(-1, 7), (8, 7), (7, -1), (5, -1)])
def test_a_note_in_an_emptied_log_counts_unless_its_leader_may_have_lacked_records(lost_in_epoch, epoch):
    assert EpochHistory.of([(7, 500)]).epoch_of_last_record(500, lost_in_epoch) == epoch


offsets = st.integers(0, 60)
steps = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 4), st.integers(0, 3)),
    st.tuples(st.just("truncate"), offsets, st.just(0)),
    st.tuples(st.just("trim"), offsets, st.just(0)),
)


@settings(deadline=None)
@given(st.lists(steps, max_size=30))
def test_the_history_is_what_the_epochs_of_the_records_say(script: list[tuple[str, int, int]]) -> None:
    """A list with every record's epoch is the model."""
    history, start, epochs = EpochHistory(), 0, []
    for name, number, more in script:
        end = start + len(epochs)
        if name == "append":
            epoch = max([*epochs, 0]) + more
            if number:
                history.assign(epoch, end)
            epochs += [epoch] * number
        elif name == "truncate" and start <= number <= end:
            history.truncate_to(number)
            epochs = epochs[: number - start]
        elif name == "trim" and start <= number < end:
            history.trim_to(number)
            epochs, start = epochs[number - start :], number
        history.check_invariants()
        end = start + len(epochs)
        assert [history.epoch_at(start + index) for index in range(len(epochs))] == epochs
        assert history.latest_epoch == (epochs[-1] if epochs else -1)
        assert not epochs or history.epoch_of_last_record(end) == epochs[-1]
        for epoch in range(history.latest_epoch + 1):
            below = [index for index, other in enumerate(epochs) if other <= epoch]
            expected_end = start + below[-1] + 1 if below else start
            assert history.end_offset_for(epoch, end).end_offset == expected_end
