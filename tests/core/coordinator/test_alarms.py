"""The time at which each group wants to be woken."""

from sparklog.core.coordinator.alarms import Alarms
from sparklog.model.time import MonotonicMs


def test_the_soonest_alarm_is_next() -> None:
    alarms = Alarms()
    assert alarms.next_ms() is None
    alarms.set("late", MonotonicMs(9))
    alarms.set("soon", MonotonicMs(5))
    assert alarms.next_ms() == 5
    assert alarms.take_due(MonotonicMs(8)) == ["soon"]
    assert alarms.next_ms() == 9


def test_an_alarm_that_was_replaced_or_taken_back_does_not_ring() -> None:
    alarms = Alarms()
    alarms.set("a", MonotonicMs(5))
    alarms.set("a", MonotonicMs(7))
    alarms.set("b", MonotonicMs(6))
    alarms.set("b", None)
    assert alarms.next_ms() == 7
    assert alarms.take_due(MonotonicMs(9)) == ["a"]
    assert alarms.take_due(MonotonicMs(9)) == []


def test_an_alarm_that_was_set_back_rings_once() -> None:
    alarms = Alarms()
    alarms.set("a", MonotonicMs(5))
    alarms.set("a", MonotonicMs(7))
    alarms.set("a", MonotonicMs(5))
    assert alarms.take_due(MonotonicMs(9)) == ["a"]
    assert alarms.next_ms() is None
