"""The arithmetic of the benchmarks' table."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench import report
from bench.report import Row, figure, longest_gap, percentile


def test_a_ratio_above_one_is_always_to_our_advantage() -> None:
    assert Row("rate", "rows/s", 200.0, 100.0).ratio == pytest.approx(2)
    assert Row("time", "s", 1.0, 5.0, more_is_better=False).ratio == pytest.approx(5)
    assert Row("alone", "s", 1.0).ratio is None


def test_a_gap_that_reaches_over_an_end_counts_whole() -> None:
    acks = [0.0, 1.0, 1.5, 4.0, 4.1, 9.0]
    assert longest_gap(acks, since=1.2, until=4.05) == pytest.approx(2.5)
    assert longest_gap(acks, since=4.05, until=5.0) == pytest.approx(4.9)
    assert longest_gap([], since=2.0, until=5.0) == pytest.approx(3)


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(value) for value in range(1, 101)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.99) == 99
    assert percentile([7.0], 0.99) == 7


def test_figures_show_three_digits_that_count() -> None:
    assert [figure(value) for value in (0, 0.146, 33.39, 163_381.2)] == ["0", "0.146", "33.4", "163,381"]


def test_what_the_proof_measured_stays_when_figures_are_written_anew(tmp_path, monkeypatch) -> None:
    results, store = tmp_path / "RESULTS.md", tmp_path / "results.json"
    store.write_text("{}")
    results.write_text(f"# Figures\n\nfigures of before\n{report.OF_THE_PROOF}\n| `some-mutant` | 3 |\n")
    monkeypatch.setattr(report, "RESULTS", results)
    monkeypatch.setattr(report, "STORE", store)
    report.write([], [], {"Python": "3"})
    report.write([], [], {"Python": "3"})
    written = results.read_text()
    assert "figures of before" not in written
    assert written.count("# Figures\n") == 1
    assert written.endswith("\n\n# What the proof measured\n\n| `some-mutant` | 3 |\n")
