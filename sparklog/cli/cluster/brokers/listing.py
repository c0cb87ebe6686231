"""``sparklog brokers list`` and ``operations``: the controller's report of them."""

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any, Final

from sparklog.cli.cluster.status.report_source import ReportSource
from sparklog.cli.command import DONE
from sparklog.cli.connect import wants_json
from sparklog.cli.progress import patience
from sparklog.cli.table import render_table
from sparklog.model.errors import SparklogError
from sparklog.wire.messages.discovery.cluster_report import (
    ClusterReportRequest,
    ClusterReportResponse,
    ReportedBroker,
    ReportedOperation,
)

RUNNING: Final = "running"
MILLISECONDS: Final = 1_000


def list_brokers(arguments: argparse.Namespace) -> int:
    brokers = _report(arguments).brokers
    if wants_json(arguments):
        print(json.dumps({"brokers": [broker_json(one) for one in brokers]}))
        return DONE
    headers = [
        "BROKER",
        "HOST",
        "STATE",
        "WISH",
        "LEADERS",
        "REPLICAS",
        "IN SYNC",
        "STARTED AGAIN",
        "APPLICATION",
    ]
    rows: list[list[object]] = [
        [
            one.broker_id,
            one.host,
            one.state,
            one.wish,
            one.leaders,
            one.replicas,
            one.in_sync,
            _known(one.relaunches),
            one.application,
        ]
        for one in brokers
    ]
    print(render_table(headers, rows))
    for one in brokers:
        if one.reason and one.state != "serving":
            print(f"broker {one.broker_id}, {one.state}: {one.reason}")
    return DONE


def list_operations(arguments: argparse.Namespace) -> int:
    show_operations(arguments, _report(arguments).operations)
    return DONE


def show_operations(arguments: argparse.Namespace, operations: Sequence[ReportedOperation]) -> None:
    if wants_json(arguments):
        print(json.dumps({"operations": [operation_json(one) for one in operations]}))
        return
    if not operations:
        print("there is no operation, and none has ended")
        return
    rows: list[list[object]] = [
        [
            one.id_,
            one.kind,
            list(one.brokers),
            one.state,
            f"{one.done} of {one.total}",
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.since_ms / MILLISECONDS)),
            one.requested_by,
        ]
        for one in operations
    ]
    print(render_table(["ID", "KIND", "BROKERS", "STATE", "DONE", "SINCE", "REQUESTED BY"], rows))
    for one in operations:
        for words in (*waiting_for(one), *([one.reason] if one.reason else [])):
            print(f"operation {one.id_}, {one.state}: {words}")


def broker_json(one: ReportedBroker) -> dict[str, Any]:
    return {
        "broker_id": one.broker_id,
        "host": one.host,
        "rack": one.rack,
        "application": one.application,
        "release": one.release,
        "state": one.state,
        "reason": one.reason,
        "since_ms": _known(one.since_ms),
        "relaunches": _known(one.relaunches),
        "leaders": one.leaders,
        "replicas": one.replicas,
        "in_sync": one.in_sync,
        "wish": one.wish,
    }


def operation_json(one: ReportedOperation) -> dict[str, Any]:
    return {
        "id": one.id_,
        "kind": one.kind,
        "brokers": list(one.brokers),
        "state": one.state,
        "done": one.done,
        "total": one.total,
        "waiting_for": waiting_for(one),
        "requested_by": one.requested_by,
        "since_ms": one.since_ms,
        "reason": one.reason,
    }


def waiting_for(one: ReportedOperation) -> list[str]:
    return [wait.words for wait in one.waits]


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _report(arguments: argparse.Namespace) -> ClusterReportResponse:
    with ReportSource(arguments) as source, patience("waiting for the report of the cluster"):
        report = source.ask(ClusterReportRequest())
        if report is None:
            raise source.failure or SparklogError("nobody gave a report of the cluster")
        return report
