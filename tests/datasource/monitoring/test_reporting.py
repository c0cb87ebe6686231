"""Offsets of a query become those of a group: the newest ones, and never in the reader's way."""

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import TopicPartition
from sparklog_datasource.monitoring import reporting as module
from sparklog_datasource.monitoring.reporting import Reporter, group_of_task, metadata_of_task, reporter
from sparklog_datasource.options.option_parsing import ConnectionOptions
from sparklog_datasource.reads.offset_json import Offsets
from tests.waiting import until

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
CONNECTION = ConnectionOptions(
    bootstrap_servers="127.0.0.1:1", client_id="test", request_timeout_ms=1_000, retry_timeout_ms=1_000
)


class Cluster:
    """Takes commits, each only when it may."""

    def __init__(self, *answers: Any) -> None:
        self.committed: list[tuple[str, Offsets]] = []
        self.answers = list(answers)
        self.began = threading.Event()
        self.may = threading.Event()
        self.may.set()

    def commit(self, group: str, offsets: Offsets, metadata: str) -> dict[TopicPartition, ErrorCode]:
        self.metadata = metadata
        self.began.set()
        assert self.may.wait(10)
        self.committed.append((group, offsets))
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)


def settle(made: Reporter) -> None:
    until(lambda: made._thread is None, "the end of the reporter's thread")


def test_offsets_are_committed_and_the_thread_ends() -> None:
    cluster = Cluster()
    made = Reporter(cluster.commit)
    made.report("g", {T0: 5})
    settle(made)
    made.report("g", {T0: 6})
    settle(made)
    assert cluster.committed == [("g", {T0: 5}), ("g", {T0: 6})]


def test_offsets_that_newer_ones_overtake_are_not_committed() -> None:
    cluster = Cluster()
    cluster.may.clear()
    made = Reporter(cluster.commit)
    made.report("g", {T0: 1})
    assert cluster.began.wait(10)
    for offset in (2, 3, 4):
        made.report("g", {T0: offset})
    made.report("other", {T1: 9})
    cluster.may.set()
    settle(made)
    assert cluster.committed == [("g", {T0: 1}), ("g", {T0: 4}), ("other", {T1: 9})]


def test_a_cluster_that_refuses_costs_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    refusal = KafkaError(ErrorCode.group_authorization_failed, "group 'g'")
    cluster = Cluster(refusal, {T0: ErrorCode.unknown_member_id}, {})
    made = Reporter(cluster.commit)
    for offset in (1, 2, 3):
        made.report("g", {T0: offset})
        settle(made)
    assert len(cluster.committed) == 3
    (told,) = caplog.messages
    assert "could not be reported as those of group 'g': GROUP_AUTHORIZATION_FAILED" in told
    assert "set option reportOffsets to false" in told


def test_a_partition_that_is_gone_is_no_refusal(caplog: pytest.LogCaptureFixture) -> None:
    made = Reporter(Cluster({T0: ErrorCode.unknown_topic_or_partition}).commit)
    made.report("g", {T0: 1})
    settle(made)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("description", "report_as", "group"),
    [
        (
            "orders eu<br/>\nid = {id}<br/>\nrunId = 1<br/>\nbatch = 0",
            None,
            "sparklog-query-orders eu-6d1f39f2",
        ),
        ("id = {id}<br/>\nrunId = 1<br/>\nbatch = 0", None, "sparklog-query-{id}"),
        ("words of the user", None, "sparklog-query-{id}"),
        (None, None, "sparklog-query-{id}"),
        ("orders<br/>\nid = {id}", "billing", "billing"),
    ],
)
def test_the_group_has_the_querys_name_and_digits_of_its_id_or_what_the_user_says(
    description: str | None, report_as: str | None, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query_id = "6d1f39f2-3b0e-4fd5-9d4c-3d7c0a5a2e11"
    properties = {
        "sql.streaming.queryId": query_id,
        "spark.job.description": description and description.format(id=query_id),
    }
    context = SimpleNamespace(getLocalProperty=properties.get)
    monkeypatch.setattr(module.TaskContext, "get", lambda: context)
    assert group_of_task(report_as) == group.format(id=query_id)


def of_task(monkeypatch: pytest.MonkeyPatch, name: str) -> str:
    """The metadata of a commit by a task of a query of this name."""
    properties = {
        "sql.streaming.queryId": "6d1f39f2",
        "spark.job.description": f"{name}<br/>\nid = 6d1f39f2<br/>\nrunId = 77<br/>\nbatch = 12",
        "spark.jobGroup.id": "77",
        "streaming.sql.batchId": "12",
    }
    context = SimpleNamespace(getLocalProperty=properties.get)
    monkeypatch.setattr(module.TaskContext, "get", lambda: context)
    return metadata_of_task()


def test_a_commit_carries_name_run_and_batch_of_its_query(monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = of_task(monkeypatch, "orders eu")
    assert json.loads(metadata) == {"name": "orders eu", "id": "6d1f39f2", "run": "77", "batch": 12}
    cluster = Cluster()
    made = Reporter(cluster.commit)
    made.report("g", {T0: 1}, metadata)
    settle(made)
    assert cluster.metadata == metadata


@pytest.mark.parametrize("name", ["x" * 5_000, "\U0001f40d" * 5_000, "\x01" * 5_000])
def test_metadata_are_never_longer_than_a_kilobyte(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = of_task(monkeypatch, name)
    assert len(metadata.encode()) <= 1_024
    assert json.loads(metadata)["batch"] == 12


def test_outside_of_a_streaming_query_a_commit_carries_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.TaskContext, "get", lambda: SimpleNamespace(getLocalProperty={}.get))
    assert metadata_of_task() == ""


def test_a_task_of_no_streaming_query_has_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(getLocalProperty={}.get)
    monkeypatch.setattr(module.TaskContext, "get", lambda: context)
    assert group_of_task("billing") is None


def test_outside_of_a_task_there_is_no_group() -> None:
    assert group_of_task("billing") is None


def test_a_process_has_one_reporter_for_each_cluster() -> None:
    assert reporter(CONNECTION) is reporter(CONNECTION)
    module._reporters.clear()
