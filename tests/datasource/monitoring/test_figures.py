"""Rows, rate and lag of a query, from its progress reports."""

import json
from typing import Any

from sparklog.model.ids import TopicId, TopicPartition
from sparklog_datasource.monitoring.figures import Figures, Reports
from sparklog_datasource.reads.offset_json import offsets_to_json

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
IDS = {"t": TopicId(int=1)}
Places = dict[TopicPartition, int]


def report(
    batch: int, rows: int, start: Places | None, end: Places, latest: Places, *, at: str = ""
) -> dict[str, Any]:
    initial = dict.fromkeys(end, 10) if start is None else None
    source = {
        "startOffset": None if start is None else json.dumps(offsets_to_json(start, topic_ids=IDS)),
        "endOffset": json.dumps(offsets_to_json(end, topic_ids=IDS, initial=initial)),
        "latestOffset": json.dumps(offsets_to_json(latest)),
    }
    return {"batchId": batch, "timestamp": f"t{batch}{at}", "numInputRows": rows, "sources": [source]}


FIRST = report(0, 20, None, {T0: 20, T1: 20}, {T0: 50, T1: 20})
SECOND = report(1, 5, {T0: 20, T1: 20}, {T0: 25, T1: 20}, {T0: 50, T1: 25})


def test_rows_are_counted_once_however_often_a_report_is_seen() -> None:
    reports = Reports()
    reports.on_reports([FIRST], 0)
    reports.on_reports([FIRST, SECOND], 1)
    reports.on_reports([SECOND], 2)
    assert reports.figures().rows == 25


def test_reports_over_spark_connect_have_no_sum_and_none_as_text() -> None:
    """There ``report["numInputRows"]`` is None, and the start of a query's first micro-batch is ``null``."""
    (source,) = FIRST["sources"]
    sources = [{**source, "startOffset": "null", "numInputRows": 12}, {**source, "numInputRows": 8}]
    reports = Reports()
    reports.on_reports([{**FIRST, "numInputRows": None, "sources": sources}], 0)
    assert reports.figures().rows == 20
    end = offsets_to_json({T0: 7}, topic_ids=IDS)
    bare = {
        "startOffset": "null",
        "endOffset": json.dumps(end),
        "latestOffset": json.dumps(end),
        "numInputRows": 0,
    }
    restarted = Reports()
    restarted.on_reports([{**FIRST, "numInputRows": None, "sources": [bare]}], 0)
    assert restarted.figures() == Figures(0, 0.0, 0, 1.0)


def test_idle_reports_of_the_last_micro_batch_count_as_reports_of_their_own() -> None:
    reports = Reports()
    reports.on_reports([FIRST], 0)
    idle = report(0, 0, {T0: 20, T1: 20}, {T0: 20, T1: 20}, {T0: 60, T1: 20}, at="+10s")
    reports.on_reports([FIRST, idle], 10)
    assert reports.figures().rows == 20
    assert reports.figures().lag == 40


def test_what_is_done_is_measured_from_where_the_first_report_began() -> None:
    reports = Reports()
    reports.on_reports([FIRST], 0)
    assert reports.figures().done == 20 / 50
    reports.on_reports([FIRST, SECOND], 1)
    assert reports.figures().done == 25 / 55


def test_a_query_that_has_read_all_is_done_also_if_it_read_nothing() -> None:
    reports = Reports()
    reports.on_reports([report(3, 0, {T0: 7}, {T0: 7}, {T0: 7})], 0)
    assert reports.figures() == Figures(0, 0.0, 0, 1.0)


def test_the_rate_is_that_of_the_last_seconds() -> None:
    reports = Reports()
    reports.on_reports([], 0)
    reports.on_reports([FIRST], 10)
    assert reports.figures().rows_per_s == 2.0
    reports.on_reports([FIRST], 20)
    assert reports.figures().rows_per_s == 0.0


def test_nothing_is_known_before_the_first_report_nor_of_sources_of_other_kinds() -> None:
    reports = Reports()
    assert reports.figures() == Figures(0, 0.0, None, None)
    rate = {"startOffset": "1", "endOffset": "12", "latestOffset": "13"}
    reports.on_reports([{"batchId": 0, "timestamp": "t", "numInputRows": 4, "sources": [rate]}], 1)
    assert str(reports.figures()) == "4 rows, 0/s"


def test_figures_are_read_by_people() -> None:
    assert str(Figures(1_234_567, 52_310.4, 9_876, 0.5)) == "1,234,567 rows, 52,310/s, 9,876 behind"
