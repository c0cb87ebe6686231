"""The figures of a broker: what each is made of, and the hour of them that is kept."""

import math
from dataclasses import replace

import pytest

from sparklog.broker.life.reporting.sampled_figures import (
    SAMPLES_KEPT_MAX,
    Counted,
    FiguresHour,
    Levels,
    figures_of,
    quantile_ms,
)

BOUNDS_MS = (10, 20, 100)


def figures(earlier: Counted, now: Counted, levels: Levels | None = None) -> dict[str, float]:
    return {name: of(earlier, now, levels or Levels()) for name, of in figures_of(BOUNDS_MS).items()}


def test_what_is_counted_is_a_rate_since_the_sample_before() -> None:
    earlier = Counted(1_000, produced_bytes=100, requests=7, cpu_ns=0)
    now = Counted(6_000, produced_bytes=1_100, produced_records=50, requests=17, cpu_ns=2_500_000_000)
    found = figures(earlier, now)
    assert (found["produced_bytes_per_s"], found["produced_records_per_s"]) == (200.0, 10.0)
    assert (found["requests_per_s"], found["fetched_bytes_per_s"], found["cpu_cores"]) == (2.0, 0.0, 0.5)


def test_a_rate_is_never_negative_because_a_deleted_topic_takes_its_counts_along() -> None:
    found = figures(Counted(0, produced_bytes=900), Counted(5_000, produced_bytes=100))
    assert found["produced_bytes_per_s"] == 0.0


def test_two_samples_in_one_millisecond_have_finite_rates() -> None:
    found = figures(Counted(5), Counted(5, requests=3))
    assert found["requests_per_s"] == 3_000.0


def test_the_p99_is_that_of_the_requests_since_the_sample_before() -> None:
    earlier = Counted(0, produces=(1_000, 0, 0, 0))
    found = figures(earlier, Counted(5_000, produces=(1_000, 100, 0, 0), fetches=(0, 0, 0, 0)))
    assert found["produce_p99_ms"] == pytest.approx(19.9)
    assert math.isnan(found["fetch_p99_ms"]), "there was no fetch"


def test_levels_are_as_they_are_and_what_a_system_does_not_say_is_nan() -> None:
    found = figures(Counted(0), Counted(5_000), replace(Levels(), leaders=4, replica_lag_max=9))
    assert (found["leaders"], found["replica_lag_max"]) == (4.0, 9.0)
    assert math.isnan(found["memory_bytes"])


@pytest.mark.parametrize(
    ("counts", "expected_ms"),
    [
        ((100, 0, 0, 0), 9.9),
        ((0, 100, 0, 0), 19.9),
        ((98, 0, 2, 0), 60.0),
        ((0, 0, 0, 5), 100.0),
        ((1, 0, 0, 0), 9.9),
    ],
    ids=["all fast", "in the second bucket", "half of the slow ones", "above all bounds", "one request"],
)
def test_a_quantile_lies_within_its_bucket(counts: tuple[int, ...], expected_ms: float) -> None:
    assert quantile_ms(BOUNDS_MS, counts, 0.99) == pytest.approx(expected_ms)


def test_no_requests_have_no_quantile() -> None:
    assert math.isnan(quantile_ms(BOUNDS_MS, (0, 0, 0, 0), 0.99))


def test_the_samples_after_a_time_are_given_oldest_first() -> None:
    hour = FiguresHour(["a", "b"])
    for second in range(5):
        hour.add(second * 1_000, [second, -second])
    assert hour.after(2_000, 100) == ([3_000, 4_000], [[3.0, 4.0], [-3.0, -4.0]])
    assert hour.after(-1, 2) == ([3_000, 4_000], [[3.0, 4.0], [-3.0, -4.0]]), "the newest, if not all may be"
    assert hour.after(-1, 0) == hour.after(9_000, 5) == hour.after(-1, -5) == ([], [[], []])


def test_times_ascend_where_the_wall_clock_is_set_back() -> None:
    hour = FiguresHour(["a"])
    for wall_ms in (5_000, 1_000, 6_000):
        hour.add(wall_ms, [0.0])
    assert hour.after(-1, 10)[0] == [5_000, 5_001, 6_000]


def test_an_hour_is_kept_and_no_more() -> None:
    hour = FiguresHour(["a"])
    for number in range(SAMPLES_KEPT_MAX + 10):
        hour.add(number, [number])
    times, (values,) = hour.after(-1, 10_000)
    assert len(times) == SAMPLES_KEPT_MAX
    assert (times[0], values[0], times[-1]) == (10, 10.0, SAMPLES_KEPT_MAX + 9)
