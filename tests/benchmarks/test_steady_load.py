"""What a steady load knows of its acknowledgements."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench.kafka_clients import SteadyLoad


def load_of(acks: dict[int, list[float]], delays_ms: list[tuple[float, float]]) -> SteadyLoad:
    return SteadyLoad("127.0.0.1:1", "topic", len(acks), 50, acks=acks, delays_ms=delays_ms)


def test_the_gap_is_that_of_the_partition_that_waited_longest() -> None:
    load = load_of({0: [0.0, 1.0, 2.0, 3.0], 1: [0.0, 2.5, 3.0]}, [])
    assert load.gap_s(0.0, 3.0) == 2.5
    assert load.gap_s(2.5, 3.0) == 1.0, "the gap that reaches into the time counts whole"


def test_delays_count_by_when_the_acknowledgement_came() -> None:
    load = load_of({0: []}, [(1.0, 900.0), (2.0, 10.0), (2.5, 20.0), (4.0, 800.0)])
    assert load.p99_ms(1.5, 3.0) == 20.0


def test_a_time_without_acknowledgements_has_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        load_of({0: []}, [(1.0, 9.0)]).p99_ms(2.0, 3.0)
