"""docs/performance.md draws what the benchmarks have found."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench import performance_page
from bench.layers import VIEWS
from bench.performance_page import PAGE, page
from bench.report import STORE


def test_the_page_is_that_of_the_results() -> None:
    assert page(PAGE.read_text(), json.loads(STORE.read_text())) == PAGE.read_text()


@pytest.mark.parametrize("view", VIEWS)
def test_the_shares_of_a_view_make_a_whole(view: str) -> None:
    rows = json.loads(STORE.read_text())["layers"]["rows"]
    shares = [row["ours"] for row in rows if row["work"].startswith(f"{view}: ")]
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0


def test_an_aim_is_reached_or_missed_by_the_ratio_that_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performance_page, "VIEWS", ())  # the aims alone
    common = {"unit": "rows/s", "more_is_better": True}
    spark = [
        {"work": "Spark: write, tuned, lz4", "ours": 3.0, "kafka": 2.0, "note": "0.5 of an empty", **common},
        {"work": "Spark: read, all columns", "ours": 3.0, "kafka": 1.0, "note": "0.71 of an empty", **common},
        {"work": "Spark: AvailableNow, long", "ours": 3.0, "kafka": None, "note": "0.5 of", **common},
    ]
    kept = {
        "spark": {"rows": spark, "notes": [], "stamp": "today"},
        "layers": {"rows": [], "notes": [], "stamp": ""},
    }
    drawn = page("<!-- drawn: aims -->\nold\n<!-- end -->\n", kept)
    assert [line.split("|")[3:5] for line in drawn.splitlines() if line.startswith("| ")][1:] == [
        [" 1.50 ", " **missed** "],
        [" 0.710 ", " reached "],
        [" – ", " not measured "],
    ]


def test_a_micro_batch_is_drawn_by_layer_and_kind_of_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performance_page, "VIEWS", ())  # the delays alone
    notes = [
        "ours, best spell (median of spells' p50 1,500): p50 1,400 ms, p99 1,600 ms; "
        "median trigger in ms: addBatch 62, getBatch 0; CPU ms a micro-batch: Python 71.",
        "empty, best spell (median of spells' p50 20): p50 10 ms, p99 30 ms; "
        "median trigger in ms: addBatch 90, getBatch 0; CPU ms a micro-batch: Python 9.",
    ]
    layers = {"rows": [], "notes": [], "stamp": ""}
    kept = {"latency": {"rows": [], "notes": notes, "stamp": "today"}, "layers": layers}
    assert page("<!-- drawn: latency -->\nold\n<!-- end -->\n", kept).splitlines()[1:-1] == [
        "| ms | ours | empty |",
        "|---|---:|---:|",
        "| latency, p50 | 1,400 | 10 |",
        "| latency, p99 | 1,600 | 30 |",
        "| trigger: addBatch | 62 | 90 |",
        "| CPU: Python | 71 | 9 |",
        "",
        "Measured today.",
    ]


def test_parts_with_aims_in_their_remarks_are_drawn_and_missing_ones_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(performance_page, "VIEWS", ())  # the aims alone
    rows = [
        {"work": "write", "unit": "rows/s", "ours": 600.0, "kafka": 100.0, "note": "aim ≥ 5"},
        {
            "work": "bytes, 20 columns, of brokers",
            "unit": "ratio",
            "ours": 0.2,
            "note": "2 MB against 10 MB; aim ≤ 0.1",
            "busy": "today",
        },
        {"work": "bytes, 20 columns, of Spark", "unit": "ratio", "ours": 0.3, "note": "aim ≤ 0.1"},
        {"work": "start, 200 columns", "unit": "ratio", "ours": 1.3, "note": "aim ≤ 1.1"},
        {"work": "beside Parquet", "unit": "ratio", "ours": 0.2},
    ]
    kept = {name: {"rows": [], "notes": [], "stamp": ""} for name in ("layers", "typed")}
    kept["typed"]["rows"] = rows
    drawn = page("<!-- drawn: other aims -->\nold\n<!-- end -->\n", kept)
    assert drawn.splitlines()[1:-1] == [
        "1 of 4 are reached. Missed:",
        "",
        "| work | aim | found |",
        "|---|---:|---:|",
        "| bytes, of brokers | ≤ 0.1 | 0.200 (busy) |",
        "| bytes, of Spark | ≤ 0.1 | 0.300 |",
        "| start | ≤ 1.1 | 1.30 |",
        "",
        "Not measured yet: "
        "`make bench BENCH_OPTIONS='producer clients groups typed_start tls security operating overview "
        "--write'` does.",
    ]


def test_nothing_is_drawn_of_aims_that_were_never_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performance_page, "VIEWS", ())
    kept = {"layers": {"rows": [], "notes": [], "stamp": ""}}
    drawn = page("<!-- drawn: other aims -->\nold\n<!-- end -->\n", kept)
    assert [line.partition(":")[0] for line in drawn.splitlines()[1:-1]] == ["Not measured yet"]
