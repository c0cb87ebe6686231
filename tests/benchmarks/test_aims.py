"""What figures should come to."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench.aims import aim_of, at_least, at_most, is_reached, judged
from bench.report import Row


@pytest.mark.parametrize(
    ("note", "ours", "reached"),
    [
        (at_least(0.95), 0.95, True),
        (at_least(0.95), 0.94, False),
        (at_most(3), 3.0, True),
        (at_most(3), 3.01, False),
        (f"2 s against 1 s; {at_most(1.5)}; Kafka 4", 2.0, False),
    ],
)
def test_an_aim_bounds_our_own_figure_from_one_side(note: str, ours: float, reached: bool) -> None:
    assert is_reached(Row("work", "ratio", ours, note=note)) is reached


def test_the_ratio_to_kafka_is_what_an_aim_is_about_where_there_is_one() -> None:
    row = Row("write", "rows/s", 500.0, 100.0, note=at_least(5))
    assert (judged(row), is_reached(row)) == (5, True)
    assert not is_reached(Row("CPU", "s", 1.0, 4.0, more_is_better=False, note=at_least(5)))


def test_a_row_without_an_aim_is_not_judged() -> None:
    row = Row("work", "s", 1.0, note="aimed at nothing")
    assert aim_of(row) == ""
    with pytest.raises(ValueError, match="no aim in the remark of 'work'"):
        is_reached(row)


def test_an_aim_is_read_as_it_was_said() -> None:
    assert aim_of(Row("work", "s", 1.0, note=f"median; {at_most(1.05)}")) == "≤ 1.05"
