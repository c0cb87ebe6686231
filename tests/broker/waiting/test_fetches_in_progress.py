"""Fetches of followers that wait inside a broker."""

from sparklog.broker.waiting.fetches_in_progress import IN_PROGRESS_MAX_MS, FetchesInProgress
from sparklog.model.ids import BrokerId
from sparklog.model.time import MonotonicMs

TWO, THREE = BrokerId(2), BrokerId(3)


def at(milliseconds: int) -> MonotonicMs:
    return MonotonicMs(milliseconds)


def test_a_follower_waits_since_the_oldest_of_its_fetches_arrived() -> None:
    inside = FetchesInProgress()
    first, _, other = inside.enter(TWO, at(5)), inside.enter(TWO, at(7)), inside.enter(THREE, at(6))
    assert inside.arrivals(at(10)) == {TWO: 5, THREE: 6}
    inside.leave(first)
    inside.leave(other)
    inside.leave(other)
    assert inside.arrivals(at(10)) == {TWO: 7}


def test_what_nobody_answered_in_minutes_does_not_count_any_more() -> None:
    inside = FetchesInProgress()
    inside.enter(TWO, at(0))
    assert inside.arrivals(at(IN_PROGRESS_MAX_MS)) == {TWO: 0}
    assert inside.arrivals(at(IN_PROGRESS_MAX_MS + 1)) == {}
