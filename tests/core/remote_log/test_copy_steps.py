"""What a leader does next for its partition in a remote store."""

from itertools import pairwise

import pytest

from sparklog.core.remote_log.copy_steps import (
    BeginOnDisk,
    CopySegment,
    CutBack,
    ForgetBelow,
    Gap,
    SharedHistory,
    Step,
    Strange,
    WritePage,
    next_step,
)
from sparklog.core.remote_log.head import TAIL_MAX, Head
from sparklog.core.remote_log.reach import LogReach, OffsetRange, SealedSegment
from tests.core.remote_log.manifests import ORDERS, segment

EMPTY = Head(ORDERS.topic_id, "file:///history")
EPOCH = 6


def head(*ends: int) -> Head:
    made, base = EMPTY, 0
    for end in ends:
        made, base = made.with_copied(segment(base, end)), end
    return made


def step(
    head: Head,
    *bounds: int,
    start: int = 0,
    local_start: int = 0,
    stable: int = 10_000,
    copies: bool = True,
    shared: int | None = 10_000,
    epochs_from: int | None = 0,
    may_cut: bool = True,
) -> Step | None:
    """The next step over local segments with these bounds."""
    sealed = [SealedSegment(a, b, b, b - a) for a, b in pairwise(bounds)]
    reach = LogReach(start, max(local_start, start), stable, epochs_from)
    return next_step(head, sealed, reach, shared=SharedHistory(shared, may_cut), copies=copies)


def test_the_first_segment_that_is_not_in_the_store_is_copied() -> None:
    assert step(EMPTY, 0, 10, 20) == CopySegment(OffsetRange(0, 10))
    assert step(head(10), 0, 10, 20) == CopySegment(OffsetRange(10, 20))
    assert step(head(10, 20), 0, 10, 20) is None


def test_what_may_be_aborted_yet_waits() -> None:
    assert step(head(10), 0, 10, 20, stable=15) is None


def test_a_full_tail_becomes_a_page_only_when_another_segment_comes() -> None:
    full = head(*range(10, 10 * TAIL_MAX + 1, 10))
    assert step(full, 0, 10 * TAIL_MAX) is None
    assert step(full, 10 * TAIL_MAX, 10 * TAIL_MAX + 10) == WritePage()


def test_a_later_start_of_the_log_comes_first() -> None:
    assert step(head(10), 0, 10, 20, start=5) == ForgetBelow(5)
    assert step(head(10).from_offset(5), 0, 10, 20, start=5) == CopySegment(OffsetRange(10, 20))


def test_an_empty_history_follows_the_logs_start_by_its_first_copy() -> None:
    assert step(EMPTY, 0, 10, 20, start=10) == CopySegment(OffsetRange(10, 20))


def test_with_copying_disabled_the_start_still_rises() -> None:
    assert step(head(10), 0, 10, 20, copies=False) is None
    assert step(head(10), 0, 10, 20, start=5, copies=False) == ForgetBelow(5)


def test_a_log_that_begins_behind_the_history_leaves_a_gap_that_is_not_copied() -> None:
    assert step(head(10), 15, 20) == Gap(10, 15)


def test_behind_a_history_that_is_below_the_start_copying_begins_anew() -> None:
    assert step(head(10), 15, 20, start=15) == ForgetBelow(15)
    assert step(head(10).from_offset(15), 15, 20, start=15) == CopySegment(OffsetRange(15, 20))


def test_a_history_is_cut_where_the_log_leaves_it_before_anything_is_copied() -> None:
    assert step(head(10, 20), 0, 15, 30, shared=15) == CutBack(15, 15)
    cut = head(10, 20).cut_to(15, EPOCH)
    assert step(cut, 0, 15, 30, shared=15) == CopySegment(OffsetRange(15, 30))


def test_it_is_cut_also_where_nothing_is_copied() -> None:
    assert step(head(10, 20), 0, 15, 30, shared=15, copies=False) == CutBack(15, 15)


def test_a_log_that_is_all_on_its_disk_may_share_nothing_of_the_history() -> None:
    assert step(head(10, 20), 0, 15, shared=None) == CutBack(0, 0)
    assert step(head(10, 20).from_offset(5), 5, 15, start=5, shared=None) == CutBack(5, 5)


def test_a_log_that_begins_anew_below_the_start_of_the_history_keeps_its_records():
    """Found by the simulation: after an election without the store its first records counted as deleted."""
    assert step(head(10, 20).from_offset(15), 0, 8, shared=None) == CutBack(0, 0)
    assert step(head(10, 20).from_offset(15), 0, 12, shared=11) == CutBack(11, 11)
    for end in (0, 11):
        anew = head(10, 20).from_offset(15).cut_to(end, 3)
        assert (anew.start_offset, anew.entries) == (end, ())


@pytest.mark.bug("B77")
def test_behind_a_cut_before_its_disk_the_log_goes_on_where_its_disk_begins() -> None:
    """Another leader had cut what this log gave up on its disk."""
    assert step(head(10, 20), 15, 30, local_start=15, shared=12) == CutBack(12, 15)
    cut = head(10, 20).cut_to(12, EPOCH)
    assert step(cut, 15, 30, local_start=15, shared=12) == CopySegment(OffsetRange(15, 30))
    copied = cut.with_copied(segment(15, 30))
    assert step(copied, 15, 30, 40, local_start=15) == CopySegment(OffsetRange(30, 40))
    assert step(copied, 35, 40) == Gap(30, 35), "that no cut explains"


def test_a_log_of_which_the_store_has_nothing_begins_with_its_disk() -> None:
    assert step(head(10, 20), 15, 30, local_start=15, shared=None) == CutBack(0, 15)
    assert step(head(10, 20).from_offset(5), 15, 30, local_start=15, shared=4) == CutBack(4, 15)
    cut = head(10, 20).cut_to(0, EPOCH)
    assert step(cut, 15, 30, local_start=15, copies=False) == BeginOnDisk(15)
    begun = cut.from_offset(15)
    assert step(begun, 15, 30, start=0, local_start=15) == BeginOnDisk(15), "until its start has risen"
    assert step(begun, 15, 30, start=15) == CopySegment(OffsetRange(15, 30))
    assert step(EMPTY, 15, 30, local_start=15) == CopySegment(OffsetRange(15, 30)), "nobody cut anything"


@pytest.mark.parametrize("epochs_from", [1, 15, None])
@pytest.mark.parametrize("shared", [None, 9])
def test_a_log_that_lost_epochs_of_before_its_disk_cuts_no_history(
    shared: int | None, epochs_from: int | None
) -> None:
    found = step(head(10, 20), 10, 15, local_start=10, shared=shared, epochs_from=epochs_from)
    assert found == Strange(10)
    known = step(head(10, 20).from_offset(2), 10, 15, local_start=10, shared=9, epochs_from=1)
    assert known == CutBack(9, 10), "what is deleted in the store shows nothing"
    assert step(head(10, 20), 10, 15, local_start=10, shared=10, epochs_from=None) == CutBack(10, 10)


@pytest.mark.parametrize("shared", [15, None])
def test_a_log_without_records_of_a_later_epoch_cuts_nothing_and_copies_nothing(shared: int | None) -> None:
    assert step(head(10, 20), 0, 15, 30, shared=shared, may_cut=False) is None
