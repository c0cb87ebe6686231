"""Times and durations as people type them."""

import argparse

import pytest

from sparklog.cli.coordinators.groups.reset_times import duration, moment

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-02T00:00:00", DAY_MS),
        ("1970-01-02T00:00:00.250", DAY_MS + 250),
        ("1970-01-02T00:00:00.250Z", DAY_MS + 250),
        ("1970-01-02T02:00:00+02:00", DAY_MS),
        ("1969-12-31T23:59:59", -1_000),
        ("1970-01-02T00:00", DAY_MS),
    ],
)
def test_a_moment_is_utc_unless_it_says_otherwise(text: str, milliseconds: int) -> None:
    assert moment(text) == milliseconds


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-31", "2026-13-01T00:00:00", "1700000000"])
def test_what_is_no_moment_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="such as 2026-01-31T23:59:59"):
        moment(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("P7D", 7 * DAY_MS),
        ("PT90M", 90 * 60_000),
        ("P1DT12H", 36 * 3_600_000),
        ("PT1H2M3.5S", 3_723_500),
        ("pt5s", 5_000),
        ("PT0S", 0),
    ],
)
def test_a_duration_has_days_hours_minutes_and_seconds(text: str, milliseconds: int) -> None:
    assert duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "PT1D", "P-1D", "3600", "P1W"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="such as P7D, PT90M or P1DT12H"):
        duration(text)


def test_a_duration_beyond_all_time_is_refused() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="too long"):
        duration("P9999999999999D")
