"""The lag of a query, from its progress reports, by the names of the Kafka connector's metrics."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

import pyspark_sparklog
from sparklog.model.ids import TopicId, TopicPartition
from sparklog_datasource.monitoring.lag import LagListener, lag_of_sources
from sparklog_datasource.reads.offset_json import offsets_to_json

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
IDS = {"t": TopicId(int=1)}


def source(
    read: dict[TopicPartition, int] | None, latest: dict[TopicPartition, int] | None
) -> dict[str, Any]:
    return {
        "endOffset": None if read is None else json.dumps(offsets_to_json(read, topic_ids=IDS)),
        "latestOffset": None if latest is None else json.dumps(offsets_to_json(latest)),
    }


def test_the_lag_is_told_by_the_three_names_of_the_kafka_connector() -> None:
    assert lag_of_sources([source({T0: 5, T1: 3}, {T0: 5, T1: 12})]) == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "9",
        "avgOffsetsBehindLatest": "4.5",
    }


def test_partitions_that_were_not_read_or_are_gone_do_not_count() -> None:
    assert lag_of_sources([source({T0: 5}, {T0: 7, T1: 100})])["maxOffsetsBehindLatest"] == "2"
    assert lag_of_sources([source({T0: 5, T1: 3}, {T0: 7})])["maxOffsetsBehindLatest"] == "2"


def test_an_end_that_is_behind_what_was_read_is_no_lag() -> None:
    assert lag_of_sources([source({T0: 5}, {T0: 3})])["minOffsetsBehindLatest"] == "0"


def test_the_lag_counts_the_partitions_of_all_sources_that_are_ours() -> None:
    kafka = {"endOffset": '{"t":{"0":1}}', "latestOffset": '{"t":{"0":500}}'}
    rate = {"endOffset": "12", "latestOffset": "13"}
    ours = [source({T0: 5}, {T0: 6}), source({T1: 5}, {T1: 8})]
    assert lag_of_sources([*ours, kafka, rate])["avgOffsetsBehindLatest"] == "2.0"
    assert lag_of_sources([kafka, rate]) == {}


@pytest.mark.parametrize("sources", [[], [source(None, {T0: 5})], [source({T0: 5}, None)]])
def test_there_is_no_lag_before_something_was_read(sources: list[dict[str, Any]]) -> None:
    assert lag_of_sources(sources) == {}


def test_a_query_without_progress_has_no_lag() -> None:
    assert pyspark_sparklog.lag(SimpleNamespace(lastProgress=None)) == {}


def progress(*sources: dict[str, Any]) -> Any:
    return SimpleNamespace(progress=SimpleNamespace(id="the id", sources=list(sources)))


def test_a_listener_reports_the_lag_of_each_progress_that_has_one() -> None:
    told: list[tuple[str, dict[str, str]]] = []
    listener = LagListener(lambda query, lag: told.append((query, lag)))
    listener.onQueryStarted(None)
    listener.onQueryProgress(progress(source(None, None)))
    listener.onQueryProgress(progress(source({T0: 5}, {T0: 6})))
    listener.onQueryIdle(None)
    listener.onQueryTerminated(None)
    assert [(query, lag["maxOffsetsBehindLatest"]) for query, lag in told] == [("the id", "1")]


def test_an_error_of_the_report_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail(query: str, lag: dict[str, str]) -> None:
        raise ValueError("no such dashboard")

    LagListener(fail).onQueryProgress(progress(source({T0: 5}, {T0: 6})))
    assert "the lag of query the id could not be reported" in caplog.messages[0]
    assert "no such dashboard" in caplog.text
