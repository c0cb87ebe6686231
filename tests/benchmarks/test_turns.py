"""Figures of both systems, taken in turns."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench import turns
from bench.clusters import Kafka, Sparklog
from bench.turns import Spent, Tally, found, gain_row, in_turns, pairs_row, spending


class Cluster:
    def __init__(self, name: str) -> None:
        self.name = name

    def broker_pids(self) -> dict[int, int]:
        return {1: 11, 2: 12, 3: 13}


OURS: Any = Cluster(Sparklog.name)
KAFKA: Any = Cluster(Kafka.name)


class Pair:
    def all(self) -> list[Any]:
        return [OURS, KAFKA]


def test_each_round_has_both_and_the_order_is_flipped() -> None:
    pair: Any = Pair()
    names = [(number, cluster.name[0]) for number, cluster in in_turns(pair, 3)]
    assert names == [(0, "s"), (0, "A"), (1, "A"), (1, "s"), (2, "s"), (2, "A")]


def test_a_rate_is_the_median_and_the_cpu_the_lower_quartile() -> None:
    tally = Tally()
    for seconds, cpu_s in [(1.0, 0.4), (2.0, 0.1), (4.0, 0.2), (5.0, 0.3)]:
        tally.note_rate("work", OURS, Spent(seconds, cpu_s), 1_000)
    tally.note_rate("work", KAFKA, Spent(2.0, 0.6), 1_000)
    row = tally.row("work", "1/s")
    assert row is not None
    assert (row.ours, row.kafka) == (375, 500)
    assert (row.cpu_us, row.kafka_cpu_us) == (pytest.approx(100), pytest.approx(600))


def test_other_work_of_kafkas_may_be_what_a_row_is_compared_with() -> None:
    tally = Tally()
    tally.note("write", OURS, 4.0)
    tally.note("write, tuned", KAFKA, 2.0)
    row = tally.row("tuned", "rows/s", work="write", kafka_work="write, tuned")
    assert row is not None
    assert row.ratio == 2
    assert row.cpu_us is None


def test_work_that_was_not_measured_makes_no_row() -> None:
    tally = Tally()
    tally.note("known", KAFKA, 1.0)
    assert found(tally.row("known", "1/s"), tally.row("unknown", "1/s")) == []


def test_the_cpu_of_a_piece_of_work_is_that_of_all_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    spent_s = iter([10.0, 12.5])
    asked: list[list[int]] = []

    def cpu_of(pids: Any) -> float:
        asked.append(list(pids))
        return next(spent_s)

    monkeypatch.setattr(turns, "cpu_of", cpu_of)
    with spending(OURS) as spent:
        assert spent.brokers_cpu_s == 0
    assert spent.brokers_cpu_s == 2.5
    assert asked == [[11, 12, 13]] * 2


def test_a_gain_says_how_many_times_as_fast_by_medians() -> None:
    row = gain_row("read", [1.0, 2.0, 9.0], [4.0, 8.0, 8.5], "aim ≥ 2.5")
    assert (row.ours, row.unit, row.note) == (4, "times as fast", "aim ≥ 2.5; 2 s against 8 s")


def test_pairs_give_the_median_of_their_own_ratios() -> None:
    row = pairs_row("rate", {"with": [1.0, 20.0, 9.0], "without": [2.0, 20.0, 10.0]}, "MB/s")
    assert (row.ours, row.note) == (0.9, "9.00 MB/s against 10.0 MB/s, 3 pairs")


def test_a_pair_without_its_other_half_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        pairs_row("rate", {"with": [1.0], "without": []}, "MB/s")
