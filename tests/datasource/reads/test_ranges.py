"""How offset ranges become Spark partitions."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from sparklog.model.ids import TopicPartition
from sparklog_datasource.reads.ranges import (
    RANGES_PER_TASK_MAX,
    SMALL_OFFSETS_MAX,
    OffsetRange,
    split_ranges,
    tasks_of_ranges,
)


def ranges(*limits: tuple[int, int]) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", i), start, end) for i, (start, end) in enumerate(limits)]


def split(
    *limits: tuple[int, int], at_least: int | None = None, at_most: int | None = None
) -> list[tuple[int, ...]]:
    pieces = split_ranges(ranges(*limits), partitions_min=at_least, records_max=at_most)
    return [(piece.topic_partition.partition, piece.start_offset, piece.end_offset) for piece in pieces]


def test_without_options_each_range_is_one_partition() -> None:
    assert split((0, 5), (3, 9)) == [(0, 0, 5), (1, 3, 9)]


def test_empty_and_backward_ranges_are_dropped() -> None:
    assert split((5, 5), (9, 3), (1, 2), at_least=1) == [(2, 1, 2)]


def test_a_minimum_that_is_met_changes_nothing() -> None:
    assert split((0, 5), (0, 5), at_least=2) == [(0, 0, 5), (1, 0, 5)]


def test_one_range_is_split_into_as_many_pieces_as_asked_for() -> None:
    assert split((1, 5), at_least=4) == [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]


def test_the_last_piece_takes_what_rounding_leaves() -> None:
    assert split((0, 5), at_least=3) == [(0, 0, 1), (0, 1, 3), (0, 3, 5)]


def test_skewed_ranges_are_split_in_proportion() -> None:
    assert split((0, 10_000), (0, 1_000), at_least=3) == [(0, 0, 5_000), (0, 5_000, 10_000), (1, 0, 1_000)]


def test_small_ranges_stay_whole_and_leave_their_quota_to_the_large_ones() -> None:
    """SPARK-36576: a small range's share of less than one must not be lost."""
    pieces = split((0, 1), (0, 1), (0, 10_000), at_least=6)
    assert pieces[:2] == [(0, 0, 1), (1, 0, 1)]
    assert [end - start for _, start, end in pieces[2:]] == [2_500] * 4


def test_a_range_is_never_dropped_however_small_its_share() -> None:
    """SPARK-28489."""
    assert (2, 0, 1) in split((0, 1_000_000), (0, 1_000_000), (0, 1), at_least=4)


def test_a_piece_is_never_empty_even_if_more_pieces_are_asked_for_than_there_are_offsets() -> None:
    assert split((0, 2), at_least=7) == [(0, 0, 1), (0, 1, 2)]


def test_records_per_partition_are_bounded() -> None:
    assert split((0, 7), (0, 3), at_most=3) == [(0, 0, 2), (0, 2, 4), (0, 4, 7), (1, 0, 3)]


def test_bound_and_minimum_work_together() -> None:
    assert len(split((0, 10), at_least=2, at_most=3)) == 4
    assert len(split((0, 10), at_least=8, at_most=5)) == 8


@given(
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), max_size=8),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1, 5_000),
)
def test_the_pieces_hold_exactly_what_the_ranges_do(
    limits: list[tuple[int, int]], at_least: int | None, at_most: int | None
) -> None:
    pieces = split_ranges(ranges(*limits), partitions_min=at_least, records_max=at_most)
    assert all(piece.size > 0 for piece in pieces)
    assert at_most is None or all(piece.size <= at_most for piece in pieces)
    for whole in ranges(*limits):
        own = [piece for piece in pieces if piece.topic_partition == whole.topic_partition]
        assert sum(piece.size for piece in own) == max(whole.size, 0)
        for before, after in itertools.pairwise(own):
            assert before.end_offset == after.start_offset
        assert not own or own[0].start_offset == whole.start_offset


def test_ranges_that_are_small_together_go_to_one_task_in_their_order() -> None:
    small = ranges((0, SMALL_OFFSETS_MAX - 1), (8, 9))
    assert tasks_of_ranges(small) == [small]
    large = ranges((0, SMALL_OFFSETS_MAX), (8, 9))
    assert tasks_of_ranges(large) == [[large[0]], [large[1]]]
    assert tasks_of_ranges([]) == []


def test_a_task_of_a_small_micro_batch_has_so_many_ranges_and_the_tasks_about_as_many() -> None:
    small = ranges(*[(0, 1)] * (2 * RANGES_PER_TASK_MAX + 1))
    tasks = tasks_of_ranges(small)
    assert [wanted for task in tasks for wanted in task] == small
    assert [len(task) for task in tasks] == [33, 34, 34]
    assert tasks_of_ranges(small[:RANGES_PER_TASK_MAX]) == [small[:RANGES_PER_TASK_MAX]]
