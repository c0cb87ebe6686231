"""What ``status`` shows, gathered from the controller's report, from Metadata, and from ``cluster.json``.

The report names every broker that has registered, also one that is away, with host, application and reason.
Metadata have the partitions. Where no broker answers, the controller is asked, and partitions are those that
it counts. A cluster of an older release gives no report: then only brokers that live, and those of
``cluster.json``, are known.
"""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from sparklog.cli.cluster.status.low_disks import LowDisk, low_disks
from sparklog.cli.cluster.status.report_source import report_of_root
from sparklog.cli.connect import connect, read_cluster_file
from sparklog.cli.progress import patience, say
from sparklog.client.cluster import ClusterClient
from sparklog.client.cluster_reports import report_of_brokers
from sparklog.client.errors import ClusterUnavailable
from sparklog.client.metadata.cluster_metadata import ClusterMetadata, PartitionMetadata
from sparklog.client.possible_losses import PossibleLoss, possible_losses
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.wire.messages.discovery.cluster_report import (
    ClusterReportRequest,
    ClusterReportResponse,
    ReportedBroker,
)

LOSSES_TIMEOUT_MS: Final = 5_000
"""How long leaders may take to say where records may be lost."""
REPORT_TIMEOUT_MS: Final = 5_000

SERVING: Final = "serving"
AWAY: Final = "away"


@dataclass(slots=True)
class BrokerStatus:
    """A broker of the report or of Metadata, or one that is only in ``cluster.json``. None is unknown."""

    broker_id: int
    host: str | None
    port: int
    alive: bool
    rack: str | None = None
    pid: int | None = None
    metrics_port: int | None = None
    leaders: int = 0
    replicas: int = 0
    in_sync: int = 0
    application: str | None = None
    release: str | None = None
    state: str = SERVING
    reason: str | None = None
    since_ms: int | None = None
    relaunches: int | None = None
    wish: str | None = None


@dataclass(slots=True)
class ControllerStatus:
    """A candidate for the office, of the report or of ``cluster.json``. None is unknown."""

    application: str | None
    host: str
    port: int
    active: bool
    release: str | None = None
    web_url: str | None = None
    pid: int | None = None
    metrics_port: int | None = None


@dataclass(slots=True)
class ClusterStatus:
    """``servers`` were asked. ``losses`` are elections that may have lost acknowledged records."""

    cluster_id: str | None
    servers: str
    brokers: list[BrokerStatus]
    controllers: list[ControllerStatus]
    controller_id: int = -1
    topics: int = 0
    partitions: int = 0
    under_replicated: int = 0
    leaderless: int = 0
    age_ms: int = 0
    """How old the report of brokers and controllers is."""
    losses: list[PossibleLoss] = field(default_factory=list)
    low_disks: list[LowDisk] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "cluster_id": self.cluster_id,
            "controller_id": self.controller_id,
            "age_ms": self.age_ms,
            "brokers": [asdict(broker) for broker in self.brokers],
            "controllers": [asdict(controller) for controller in self.controllers],
            "topic_count": self.topics,
            "partition_count": self.partitions,
            "under_replicated_partition_count": self.under_replicated,
            "leaderless_partition_count": self.leaderless,
            "lossy_partitions": {f"{one.topic}-{one.partition}": one.leader_epoch for one in self.losses},
            "losses": [asdict(loss) for loss in self.losses],
            "low_disks": [asdict(disk) for disk in self.low_disks],
        }


def look(arguments: argparse.Namespace) -> ClusterStatus:
    """Ask the cluster that the options name. ClusterUnavailable if nobody answers."""
    root: Path | None = getattr(arguments, "root", None)
    local = read_cluster_file(root) if root is not None else {}
    try:
        with connect(arguments) as cluster, patience(f"asking {cluster.bootstrap_servers}"):
            return _asked(cluster, local)
    except ClusterUnavailable as error:
        report = None if root is None else report_of_root(arguments, root, ClusterReportRequest())
        if report is None:
            raise
        say(f"warning: only the controller answers: {error}")
        return _without_brokers(report, local)


def _asked(cluster: ClusterClient, local: Mapping[str, Any]) -> ClusterStatus:
    report = _report(cluster)
    seen = cluster.metadata()
    brokers = _brokers(report, seen, local)
    partitions = _partitions(seen)
    for partition in partitions:
        for broker_id, broker in brokers.items():
            broker.leaders += partition.leader == broker_id
            broker.replicas += broker_id in partition.replicas
            broker.in_sync += broker_id in partition.isr
    return ClusterStatus(
        cluster_id=seen.cluster_id,
        servers=cluster.bootstrap_servers,
        brokers=[brokers[broker_id] for broker_id in sorted(brokers)],
        controllers=_controllers(report, local),
        controller_id=seen.controller_id,
        topics=len(seen.topics),
        partitions=len(partitions),
        under_replicated=sum(len(one.isr) < len(one.replicas) for one in partitions),
        leaderless=sum(one.leader not in seen.brokers for one in partitions),
        age_ms=0 if report is None else report.age_ms,
        losses=possible_losses(cluster, seen, cluster.deadline(LOSSES_TIMEOUT_MS)),
        low_disks=low_disks(cluster, sorted(seen.brokers)),
    )


def _without_brokers(report: ClusterReportResponse, local: Mapping[str, Any]) -> ClusterStatus:
    """As the controller itself counts partitions."""
    brokers = _brokers(report, None, local)
    for one in report.brokers:
        known = brokers[one.broker_id]
        known.leaders, known.replicas, known.in_sync = one.leaders, one.replicas, one.in_sync
    return ClusterStatus(
        cluster_id=str(local.get("cluster_id", "")),
        servers=str(local.get("bootstrap_servers", "")),
        brokers=[brokers[broker_id] for broker_id in sorted(brokers)],
        controllers=_controllers(report, local),
        topics=report.topics,
        partitions=report.partitions,
        under_replicated=report.under_replicated,
        leaderless=report.leaderless,
        age_ms=report.age_ms,
    )


def _report(cluster: ClusterClient) -> ClusterReportResponse | None:
    """None, with a warning, if nobody gives one."""
    try:
        return report_of_brokers(cluster, ClusterReportRequest(), timeout_ms=REPORT_TIMEOUT_MS)
    except KafkaError as error:
        old = " of an older release" if error.code is ErrorCode.unsupported_version else ""
        say(
            f"warning: the cluster{old} gives no report, so brokers that are away, reasons and standby "
            f"controllers are missing: {error.message}"
        )
    return None


def _brokers(
    report: ClusterReportResponse | None, seen: ClusterMetadata | None, local: Mapping[str, Any]
) -> dict[int, BrokerStatus]:
    reported = [] if report is None else report.brokers
    brokers = {one.broker_id: _of_report(one) for one in reported}
    for live in [] if seen is None else seen.brokers.values():
        known = brokers.setdefault(live.id, BrokerStatus(live.id, live.host, live.port, alive=True))
        known.host, known.port, known.rack, known.alive = live.host, live.port, live.rack, True
    for entry in entries(local, "brokers"):
        down = BrokerStatus(entry["id"], entry["host"], entry["port"], alive=False, state=AWAY)
        known = brokers.setdefault(entry["id"], down)
        known.pid, known.metrics_port = entry["pid"], entry.get("metrics_port")
        known.port = entry["port"] if known.port < 0 else known.port
    return brokers


def _of_report(one: ReportedBroker) -> BrokerStatus:
    return BrokerStatus(
        one.broker_id,
        one.host,
        one.port,
        alive=one.state in (SERVING, "stopping"),
        rack=one.rack,
        application=one.application,
        release=one.release,
        state=one.state,
        reason=one.reason,
        since_ms=None if one.since_ms < 0 else one.since_ms,
        relaunches=None if one.relaunches < 0 else one.relaunches,
        wish=one.wish,
    )


def _controllers(report: ClusterReportResponse | None, local: Mapping[str, Any]) -> list[ControllerStatus]:
    reported = [] if report is None else report.controllers
    found = {
        (one.host, one.port): ControllerStatus(
            one.application, one.host, one.port, one.is_active, one.release, one.web_url
        )
        for one in reported
    }
    for entry in entries(local, "controllers"):
        place = entry["host"], entry["port"]
        known = found.setdefault(place, ControllerStatus(None, *place, active=entry["active"]))
        known.pid, known.metrics_port = entry["pid"], entry.get("metrics_port")
    return list(found.values())


def _partitions(seen: ClusterMetadata) -> list[PartitionMetadata]:
    return [partition for topic in seen.topics.values() for partition in topic.partitions.values()]


def entries(local: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of ``cluster.json``, empty if it has none of that name."""
    found = local.get(name, [])
    return found if isinstance(found, list) else []
