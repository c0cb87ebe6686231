"""Events are numbered without gaps, and the newest ones are kept."""

from sparklog.core.controller.events.cluster_event import ClusterEvent, EventKind
from sparklog.core.controller.events.event_log import EVENTS_MAX, EventLog, events_after
from sparklog.model.ids import ControllerEpoch


def log_of(count):
    log = EventLog(ControllerEpoch(4))
    for number in range(count):
        log.add(ClusterEvent(EventKind.topic, "t", f"the event {number}"), 1_000 + number)
    return log


def numbers(events):
    return [one.number for one in events]


def test_numbers_rise_by_one_from_one():
    log = log_of(3)
    assert [(one.term, one.number, one.time_ms) for one in log.kept] == [
        (4, 1, 1_000),
        (4, 2, 1_001),
        (4, 3, 1_002),
    ]


def test_what_was_read_does_not_change_with_later_events():
    log = log_of(2)
    read = log.kept
    log.add(ClusterEvent(EventKind.topic, "t", "a later one"), 5_000)
    assert (numbers(read), numbers(log.kept)) == ([1, 2], [1, 2, 3])


def test_the_oldest_goes_for_each_that_comes_once_all_places_are_taken():
    log = log_of(EVENTS_MAX + 2)
    assert len(log.kept) == EVENTS_MAX
    assert (log.kept[0].number, log.kept[-1].number) == (3, EVENTS_MAX + 2)


def test_a_follower_gets_what_follows_its_last_event():
    log = log_of(5)
    assert numbers(events_after(log.kept, 3, 10)) == [4, 5]
    assert numbers(events_after(log.kept, 0, 2)) == [1, 2]
    assert numbers(events_after(log.kept, 5, 10)) == numbers(events_after(log.kept, 9, 10)) == []
    assert events_after((), 0, 10) == ()


def test_a_follower_that_is_late_begins_with_the_oldest_that_is_kept():
    assert numbers(events_after(log_of(EVENTS_MAX + 7).kept, 2, 2)) == [8, 9]


def test_events_that_are_no_longer_kept_still_count():
    log = log_of(EVENTS_MAX + 1)
    log.add(ClusterEvent(EventKind.loss, "t", "a loss"), 9_000)
    assert log.counts == {EventKind.topic: EVENTS_MAX + 1, EventKind.loss: 1}
