"""What compaction decides, rule by rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.core.compaction import (
    CompactionRules,
    DirtyRange,
    IfEmpty,
    LastOfProducer,
    MarkerFate,
    SegmentExtent,
    Throttle,
    TransactionSurvey,
    dirty_range,
    filthiest,
    grouped,
    if_empty,
    marker_fate,
)
from sparklog.model.ids import TopicPartition

NOW_MS = 1_000_000


def closed(*sizes: int, newest_ms: int = 0, oldest_ms: int = -1) -> list[SegmentExtent]:
    """Segments of 10 offsets each."""
    return [
        SegmentExtent(10 * nth, 10 * nth + 10, size, newest_ms=newest_ms, oldest_ms=oldest_ms)
        for nth, size in enumerate(sizes)
    ]


def dirty(segments: list[SegmentExtent], **given: object) -> DirtyRange:
    values = {"log_start_offset": 0, "checkpoint": None, "stable_end": 1 << 40, "rules": CompactionRules()}
    return dirty_range(segments, now_ms=NOW_MS, **{**values, **given})


def test_a_log_that_was_never_cleaned_is_all_dirty():
    found = dirty(closed(100, 50))
    assert (found.first_dirty, found.end, found.clean_bytes, found.dirty_bytes) == (0, 20, 0, 150)
    assert found.ratio == 1.0


def test_what_lies_before_the_last_rounds_end_is_clean():
    found = dirty(closed(100, 50, 50), checkpoint=10)
    assert (found.first_dirty, found.end, found.clean_bytes, found.dirty_bytes) == (10, 30, 100, 100)
    assert found.ratio == 0.5
    assert not found.is_due(CompactionRules(min_dirty_ratio=0.5))
    assert found.is_due(CompactionRules(min_dirty_ratio=0.49))


@pytest.mark.parametrize("checkpoint", [4, 31])
def test_a_checkpoint_outside_the_log_says_nothing(checkpoint: int):
    found = dirty(closed(100, 50, 50), checkpoint=checkpoint, log_start_offset=5)
    assert found.first_dirty == 5


def test_the_high_watermark_bounds_a_round():
    assert dirty(closed(100, 50, 50), stable_end=17).end == 17
    found = dirty(closed(100, 50, 50), stable_end=7, checkpoint=10)
    assert (found.first_dirty, found.end) == (10, 10)
    assert not found.is_due(CompactionRules(min_dirty_ratio=0.0))


def test_a_segment_with_a_young_record_bounds_a_round_if_there_is_a_minimal_lag():
    segments = [*closed(100), SegmentExtent(10, 20, 50, newest_ms=NOW_MS - 99), SegmentExtent(20, 30, 50)]
    assert dirty(segments, rules=CompactionRules(min_lag_ms=100)).end == 10
    assert dirty(segments, rules=CompactionRules(min_lag_ms=99)).end == 30
    assert dirty(segments).end == 30


def test_a_record_that_is_too_old_makes_a_log_due_whatever_its_ratio():
    rules = CompactionRules(min_dirty_ratio=0.9, max_lag_ms=1_000)
    old = dirty(closed(100, 1, oldest_ms=NOW_MS - 1_001), checkpoint=10, rules=rules)
    assert old.overdue_ms == 1
    assert old.is_due(rules)
    assert not dirty(closed(100, 1, oldest_ms=NOW_MS - 1_000), checkpoint=10, rules=rules).is_due(rules)
    assert not dirty(closed(100, 1, oldest_ms=1), checkpoint=20, rules=rules).is_due(rules)


def test_a_log_without_closed_segments_needs_nothing():
    found = dirty([], log_start_offset=7)
    assert (found.first_dirty, found.end, found.ratio) == (7, 7, 0.0)


def test_the_filthiest_of_the_due_logs_is_next():
    rules = CompactionRules()
    logs = {
        TopicPartition("a", 0): (DirtyRange(0, 10, 40, 60), rules),
        TopicPartition("b", 0): (DirtyRange(0, 10, 20, 80), rules),
        TopicPartition("c", 0): (DirtyRange(0, 10, 0, 100), CompactionRules(min_dirty_ratio=1.0)),
    }
    assert filthiest(logs) == TopicPartition("b", 0)
    assert filthiest({}) is None


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 30)), max_size=20))
def test_groups_hold_all_segments_in_order_and_none_is_too_large(sizes: list[tuple[int, int]]):
    segments = [
        SegmentExtent(10 * nth, 10 * nth + 10, size, index_entries=entries)
        for nth, (size, entries) in enumerate(sizes)
    ]
    rules = CompactionRules(segment_bytes=100, index_entries_max=40)
    groups = grouped(segments, rules)
    assert [index for group in groups for index in group] == list(range(len(segments)))
    for group in groups:
        if len(group) > 1:
            assert sum(segments[index].size_bytes for index in group) <= 100
            assert sum(segments[index].index_entries for index in group) <= 40


def test_offsets_too_far_apart_for_one_index_do_not_become_one_segment():
    far = SegmentExtent(2**31 - 5, 2**31 + 5, 1)
    assert grouped([SegmentExtent(0, 10, 1), far], CompactionRules()) == [[0], [1]]


def test_a_survey_tells_aborted_transactions_from_committed_and_open_ones():
    survey = TransactionSurvey()
    survey.on_data(1, 10)
    survey.on_data(2, 11)
    survey.on_data(1, 12)
    survey.on_marker(1, 13, is_commit=False)
    survey.on_data(1, 14)
    survey.on_marker(1, 15, is_commit=True)
    survey.on_marker(3, 16, is_commit=False)
    assert [survey.is_aborted(1, offset) for offset in (9, 10, 12, 13, 14)] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert not survey.is_aborted(2, 11)
    assert [survey.has_data(offset) for offset in (13, 15, 16)] == [True, True, False]
    assert survey.first_undecided() == 11
    survey.on_marker(2, 17, is_commit=False)
    assert survey.first_undecided() is None


@pytest.mark.bug("B9")
def test_an_empty_batch_stays_only_where_something_hangs_on_it():
    producers = {1: LastOfProducer(0, frozenset({14, 19})), 2: LastOfProducer(4)}

    def fate(last_offset: int, producer_id: int, epoch: int = 0, *, control: bool = False) -> IfEmpty:
        return if_empty(
            last_offset=last_offset,
            producer_id=producer_id,
            producer_epoch=epoch,
            is_control=control,
            producers=producers,
            segment_end=100,
        )

    assert fate(99, -1) is IfEmpty.KEEP
    assert fate(19, 1) is IfEmpty.KEEP
    assert fate(14, 1) is IfEmpty.KEEP
    assert fate(18, 1) is IfEmpty.REMOVE
    assert fate(19, 1, control=True) is IfEmpty.REMOVE
    assert fate(50, 2, 4, control=True) is IfEmpty.KEEP
    assert fate(50, 2, 3, control=True) is IfEmpty.REMOVE
    assert fate(50, 7) is IfEmpty.REMOVE


def test_a_marker_goes_through_its_stages():
    def fate(*, has_data: bool = False, is_empty: bool = False, horizon: int | None = None) -> MarkerFate:
        return marker_fate(has_data=has_data, is_empty=is_empty, delete_horizon_ms=horizon, now_ms=100)

    assert fate(has_data=True) is MarkerFate.STAYS
    assert fate(has_data=True, horizon=50) is MarkerFate.STAYS
    assert fate() is MarkerFate.GETS_HORIZON
    assert fate(horizon=101) is MarkerFate.STAYS
    assert fate(horizon=100) is MarkerFate.GOES
    assert fate(is_empty=True) is MarkerFate.GOES


def test_a_throttle_keeps_the_rate_and_forgets_old_rest():
    throttle = Throttle(1_000.0)
    assert throttle.pause_ms(500, 0) == 500
    assert throttle.pause_ms(500, 500) == 500
    assert throttle.pause_ms(100, 1_050) == 50
    assert throttle.pause_ms(1_000, 60_000) == 1_000
    assert throttle.pause_ms(0, 61_000) == 0


def test_a_throttle_without_a_limit_never_pauses():
    throttle = Throttle(1.7976931348623157e308)
    assert [throttle.pause_ms(1 << 40, now) for now in (0, 1, 20_000)] == [0, 0, 0]
