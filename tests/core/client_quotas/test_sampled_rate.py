"""Rates over samples, and how long one that exceeded its bound waits, by a clock that is moved by hand."""

import pytest

from sparklog.core.client_quotas.sampled_rate import DELAY_MAX_MS, SampledRate, Windows

ELEVEN = Windows()


def rate_of(*events, windows=ELEVEN):
    rate = SampledRate(windows)
    for now_ms, amount in events:
        rate.record(amount, now_ms)
    return rate


def test_a_burst_after_silence_is_spread_over_all_samples_but_one():
    assert rate_of((5_000, 1_000)).rate(5_000) == 100.0


def test_a_steady_use_has_its_rate():
    rate = rate_of(*((now_ms, 50) for now_ms in range(0, 60_000, 500)))
    assert rate.rate(60_000) == pytest.approx(100.0, rel=0.05)


def test_a_sample_counts_until_all_samples_have_passed_since_its_last_event():
    rate = rate_of((0, 600), (900, 400))
    assert rate.rate(11_899) > 0
    assert rate.rate(11_900) == 0.0


def test_the_delay_is_the_excess_over_the_bound_times_the_measured_time():
    rate = rate_of((0, 3_000))
    assert rate.delay_ms(100.0, 0) == 20_000  # (300 - 100) / 100 * 10 s
    assert rate.delay_ms(100.0, 500) == round((3_000 / 10.5 - 100) / 100 * 10_500)
    assert rate.delay_ms(300.0, 0) == 0


def test_one_that_waits_as_it_is_asked_to_has_its_bound_on_average():
    rate, now_ms, sent = SampledRate(ELEVEN), 0, 0
    while now_ms < 600_000:
        rate.record(5_000, now_ms)
        sent += 5_000
        now_ms += 10 + rate.delay_ms(10_000.0, now_ms)
    assert sent / (now_ms / 1_000) == pytest.approx(10_000, rel=0.1)


@pytest.mark.parametrize("bound", [0.0, 1.0])
def test_a_bound_of_nothing_or_of_a_byte_delays_for_an_hour_at_most(bound):
    assert rate_of((0, 1_000_000)).delay_ms(bound, 0) == DELAY_MAX_MS


def test_what_was_taken_back_was_not_used():
    rate = rate_of((0, 900), (0, 100_000), (0, -100_000))
    assert rate.delay_ms(90.0, 0) == 0
    assert rate.rate(0) == 90.0


def test_the_delay_has_the_bound_of_its_kind():
    assert rate_of((0, 1_000_000)).delay_ms(1.0, 0, 1_000) == 1_000


def test_a_lowered_bound_counts_what_was_used_before():
    rate = rate_of((0, 10_000))
    assert rate.delay_ms(1_000.0, 0) == 0
    assert rate.delay_ms(100.0, 0) == 90_000


def test_one_sample_is_measured_since_it_began():
    one = Windows(samples=1, sample_ms=2_000)
    assert rate_of((0, 10), windows=one).rate(0) == 5.0
    assert rate_of((0, 10), windows=one).rate(1_000) == 10.0
