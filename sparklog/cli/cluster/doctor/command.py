"""``sparklog doctor``: what is wrong with a cluster, or will be, each with value, harm and remedy."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts
from sparklog.cli.cluster.doctor.doctor_finding import Severity
from sparklog.cli.cluster.doctor.doctor_text import render_findings
from sparklog.cli.cluster.doctor.examination import examine
from sparklog.cli.cluster.doctor.gathering import FactsGathering, facts_without_brokers
from sparklog.cli.cluster.status.report_source import report_of_root
from sparklog.cli.command import DONE, FAILED, Command
from sparklog.cli.connect import add_cluster_arguments, add_json_argument, cluster_words, connect, wants_json
from sparklog.cli.progress import patience
from sparklog.client.errors import ClusterUnavailable
from sparklog.network.clock import SystemClock
from sparklog.wire.messages.discovery.cluster_report import ClusterReportRequest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser)
    add_json_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    findings = examine(_facts(arguments))
    if wants_json(arguments):
        print(json.dumps({"findings": [asdict(finding) for finding in findings]}))
    else:
        print(render_findings(findings))
    return FAILED if any(one.severity is Severity.grave for one in findings) else DONE


def _facts(arguments: argparse.Namespace) -> ClusterFacts:
    """From brokers; from the controller, if none answers and ``--root`` says where it is."""
    options = cluster_words(arguments)
    try:
        with connect(arguments) as cluster, patience("examining the cluster"):
            return FactsGathering(cluster, options).gather()
    except ClusterUnavailable as error:
        root: Path | None = getattr(arguments, "root", None)
        report = None if root is None else report_of_root(arguments, root, ClusterReportRequest())
        if report is None:
            raise
        return facts_without_brokers(report, options, SystemClock().wall_ms(), str(error))


COMMAND = Command(
    name="doctor",
    summary="what is wrong with the cluster, or less safe than it looks, with the remedy",
    description="Examines brokers, in-sync replicas, disks, open files, topics, transactions, groups,\n"
    "ZooKeeper, certificates, settings and releases. Each finding has what was seen, the harm it\n"
    "does, and the remedy. Ends with status 1 if one is grave.\n\n"
    "It changes nothing. Groups with old unread records are looked at twice, six seconds apart.",
    add_arguments=add_arguments,
    run=run,
    examples=(
        "sparklog doctor --root /tmp/sparklog",
        "sparklog doctor --bootstrap-server 127.0.0.1:9092 --json",
    ),
)
