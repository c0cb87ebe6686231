"""What each kind of fetcher may see."""

from sparklog.core.replication.visibility import Visibility
from sparklog.core.replication.waits import FetchWaits
from sparklog.core.replication.watermarks import Watermarks
from sparklog.model.ids import Offset, ProducerId

A = ProducerId(7)


def marks_with_open_transaction(*, since: int, start: int = 0) -> Watermarks:
    marks = Watermarks(start, 10, 20)
    marks.transactions.begin(A, Offset(since))
    marks.clamp()
    return marks


def test_read_committed_consumers_stop_at_the_first_open_transaction():
    marks = marks_with_open_transaction(since=4)
    ends = [marks.readable_end(visibility) for visibility in Visibility]
    assert ends == [20, 10, 4]


def test_a_transaction_above_the_high_watermark_holds_back_nobody():
    assert marks_with_open_transaction(since=15).last_stable_offset == 10


def test_the_last_stable_offset_is_within_the_log_although_its_transaction_began_before():
    marks = marks_with_open_transaction(since=2, start=6)
    assert marks.last_stable_offset == 6
    marks.check_invariants()


def test_a_marker_frees_readers_when_it_is_committed():
    marks = marks_with_open_transaction(since=4)
    marks.transactions.end(A, 12)
    assert marks.last_stable_offset == 4
    marks.set_high_watermark(12)
    assert marks.last_stable_offset == 4
    marks.set_high_watermark(13)
    assert marks.last_stable_offset == 13


def test_parked_consumers_are_woken_by_the_end_of_what_they_may_see():
    marks, waits = marks_with_open_transaction(since=4), FetchWaits()
    waits.add(1, 10, Visibility.HIGH_WATERMARK)
    waits.add(2, 4, Visibility.LAST_STABLE_OFFSET)
    marks.transactions.end(A, 12)
    marks.set_high_watermark(12)
    assert waits.take_for_high_watermark(marks) == [1]
    marks.set_high_watermark(13)
    assert waits.take_for_high_watermark(marks) == [2]
    assert len(waits) == 0


def test_the_watermarks_are_never_in_the_part_that_only_a_store_has():
    marks = Watermarks(0, 10, 20, local_start_offset=12)
    marks.clamp()
    marks.check_invariants()
    assert (marks.high_watermark, marks.last_stable_offset) == (12, 12)
