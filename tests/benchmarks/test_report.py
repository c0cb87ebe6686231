"""The arithmetic of the benchmarks' table."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench import report
from bench.report import PartResult, Row, figure, longest_gap, merged, percentile


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
    report.write([], [], [], {"Python": "3"})
    report.write([], [], [], {"Python": "3"})
    written = results.read_text()
    assert "figures of before" not in written
    assert written.count("# Figures\n") == 1
    assert written.endswith("\n\n# What the proof measured\n\n| `some-mutant` | 3 |\n")


def test_a_row_says_the_cpu_of_both_and_that_the_machine_was_busy() -> None:
    row = Row("rate", "1/s", 200.0, 100.0, note="once", cpu_us=154.2, kafka_cpu_us=1_970.0, busy="today")
    assert row.line() == "| rate | **2.00** | 200 | 100 | 1/s | 154 / 1,970 | once; *busy*: today |"
    assert Row("alone", "s", 1.0).line() == "| alone | – | 1.00 | – | s | – |  |"


def _part(stamp: str, *works: str, busy: bool = False) -> PartResult:
    part = PartResult([Row(work, "1/s", 1.0, note=stamp) for work in works], [f"note of {stamp}"], stamp)
    if busy:
        part.mark_busy()
    return part


def test_a_busy_run_replaces_no_quiet_row_and_adds_what_there_was_not() -> None:
    kept = merged(_part("quiet", "a", "b"), _part("loud", "b", "c", busy=True))
    assert [(row.work, row.note, row.busy) for row in kept.rows] == [
        ("a", "quiet", ""),
        ("b", "quiet", ""),
        ("c", "loud", "loud"),
    ]
    assert (kept.notes, kept.stamp) == (["note of quiet"], "quiet")


def test_a_quiet_run_replaces_all_rows_of_its_part() -> None:
    now = _part("later", "b", "c")
    assert merged(_part("quiet", "a", "b"), now) is now
    assert merged(_part("loud", "a", "b", busy=True), now) is now


def test_a_busy_run_replaces_a_busy_one() -> None:
    now = _part("later", "b", busy=True)
    assert merged(_part("loud", "a", "b", busy=True), now) is now


def test_quiet_rows_outlast_two_busy_runs_in_the_store(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path / "RESULTS.md")
    monkeypatch.setattr(report, "STORE", tmp_path / "results.json")
    report.keep("part", _part("quiet", "a"))
    report.keep("part", _part("loud", "a", "b", busy=True))
    report.keep("part", _part("louder", "a", "b", busy=True))
    report.write(["part"], [], [], {"Python": "3"})
    written = (tmp_path / "RESULTS.md").read_text()
    assert "| a | – | 1.00 | – | 1/s | – | quiet |" in written
    assert "| b | – | 1.00 | – | 1/s | – | louder; *busy*: louder |" in written
    assert "Measured quiet." in written


def test_figures_beside_kafka_without_zookeeper_have_a_table_of_their_own(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path / "RESULTS.md")
    monkeypatch.setattr(report, "STORE", tmp_path / "results.json")
    report.keep("part", _part("3.9", "a"))
    report.keep(report.beside_kraft("part"), _part("4.1", "a"))
    report.write(["part"], [], ["part"], {"Python": "3"})
    first, _, second = (tmp_path / "RESULTS.md").read_text().partition("# Beside Apache Kafka without")
    assert ("note of 3.9" in first, "note of 4.1" in first) == (True, False)
    assert ("| a | – | 1.00 | – | 1/s | – | 4.1 |" in second, "Measured 4.1." in second) == (True, True)


@pytest.mark.parametrize(("cores", "end"), [(None, ""), (0.123, ", others used 0.12 cores just before")])
def test_the_circumstances_say_what_others_used_if_that_was_measured(cores: float | None, end: str) -> None:
    assert report.stamp(cores).partition(" UTC, commit ")[2].endswith(end)
    assert ("others" in report.stamp(cores)) is bool(end)
