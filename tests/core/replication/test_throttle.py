"""Bytes a second, with the time passed in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.core.replication.throttle import UNLIMITED, Throttle, ThrottledPartitions


def throttle(rate, now_ms=0):
    made = Throttle()
    made.set_rate(rate, now_ms)
    return made


def test_a_second_s_worth_may_go_at_once_and_then_the_rate_holds():
    made = throttle(1_000)
    assert made.left(0) == 1_000
    made.spend(1_000, 0)
    assert made.left(0) == 0
    assert made.left(250) == 250
    assert made.left(60_000) == 1_000


def test_what_is_larger_than_the_allowance_makes_a_debt_that_time_pays():
    made = throttle(1_000)
    made.spend(5_000, 0)
    assert made.left(0) == -4_000
    assert made.left(3_999) == -1
    assert made.left(4_001) == 1


def test_a_rate_of_nothing_lets_nothing_through_ever():
    assert throttle(0).left(10**9) == 0


def test_a_debt_is_paid_at_the_rate_that_holds_now():
    made = throttle(1_000)
    made.spend(11_000, 0)
    made.set_rate(10_000, 0)
    assert made.left(1_000) == 0
    made.set_rate(UNLIMITED, 1_000)
    assert not made.is_limited
    made.set_rate(10, 2_000)
    assert made.left(2_000) == 10


@pytest.mark.scenario("S8")
@given(st.integers(1, 10**9), st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 10**7)), min_size=1))
def test_over_any_while_no_more_goes_than_the_rate_a_second_s_worth_and_one_answer(rate, steps):
    made, now_ms, sent, largest = throttle(rate), 0, 0, 0
    for pause_ms, size in steps:
        now_ms += pause_ms
        if made.left(now_ms) > 0:
            made.spend(size, now_ms)
            sent, largest = sent + size, max(largest, size)
    assert sent <= rate * now_ms / 1_000 + rate + largest


def test_a_setting_names_partitions_of_brokers_or_all():
    named = ThrottledPartitions.of(("0:1", "1:2", "3:1"), 1)
    assert [number for number in range(4) if number in named] == [0, 3]
    assert not ThrottledPartitions.of(("0:1",), 2)
    assert not ThrottledPartitions.of((), 1)
    assert 99 in ThrottledPartitions.of(("*",), 1)
