"""This checkout against another one: the arithmetic, and what is refused."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench.before import BEFORE, NOW, Found, before, command_of
from bench.clusters import Pair
from bench.scale import QUICK


def test_a_rate_is_the_median_of_the_rounds_ratios_and_cpu_the_ratio_of_lower_quartiles() -> None:
    found = Found()
    for now, earlier in ((200.0, 100.0), (300.0, 100.0), (90.0, 100.0)):
        found.note("produces", NOW, now, cpu_us=now)
        found.note("produces", BEFORE, earlier, cpu_us=earlier * 2)
    rate, cpu = found.rows()
    assert (rate.work, rate.ours) == ("produces: rate, now against before", 2.0)
    assert (cpu.ours, cpu.note) == (0.45, "90.0 us against 200 us")


def test_without_another_checkout_the_part_is_left_out() -> None:
    assert before(Pair(kafka=None), QUICK).rows == []


def test_a_command_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no such program"):
        command_of(str(tmp_path / "sparklog"))
