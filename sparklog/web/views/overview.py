"""``/``: whether the cluster is well, and its figures at a glance."""

from dataclasses import asdict

import sparklog
from sparklog.client.errors import ClusterUnavailable
from sparklog.client.possible_losses import PossibleLoss, possible_losses
from sparklog.model.errors import KafkaError, SparklogError
from sparklog.web.disks import Disk, ask_each, disks_of
from sparklog.web.verdict import SERVING, Facts, verdict_of
from sparklog.web.view_question import Question
from sparklog.web.viewer import SLOW_MS, Viewer
from sparklog.web.views.event_rows import event_row
from sparklog.wire.messages.discovery.cluster_report import ClusterReportResponse

LAST_EVENTS: int = 8
LOSSES_TIMEOUT_MS = 1_500
FIGURES_MS: int = 4_000
"""Brokers have new ones every five seconds."""


def overview(viewer: Viewer, _: Question) -> dict[str, object]:
    try:
        report = viewer.report()
    except ClusterUnavailable as error:
        facts = Facts(None, viewer.options, silence=str(error))
        return {"verdict": asdict(verdict_of(facts)), "page_release": sparklog.__version__}
    disks = _disks_alone(viewer)
    facts = Facts(report, viewer.options, losses=_losses(viewer), disks=disks)
    return {
        "verdict": asdict(verdict_of(facts)),
        "page_release": sparklog.__version__,
        "cluster_id": _cluster_id(viewer),
        "servers": viewer.cluster.bootstrap_servers,
        "age_ms": report.age_ms,
        "term": report.term,
        "controllers": [asdict(one) for one in report.controllers],
        "brokers": {
            "total": len(report.brokers),
            "serving": sum(one.state == SERVING for one in report.brokers),
        },
        "releases": sorted({one.release for one in report.brokers if one.release}),
        "topics": report.topics,
        "partitions": report.partitions,
        "leaderless": report.leaderless,
        "under_replicated": report.under_replicated,
        "moving": report.moving,
        "fullest_disk": _fullest(disks),
        "figures": _figures(viewer, report),
        "largest_lag": _largest_lag(viewer),
        "events": [event_row(event) for event in viewer.events().kept[: -LAST_EVENTS - 1 : -1]],
    }


def known_disks(viewer: Viewer) -> list[Disk]:
    """The disks of all brokers that serve, and the logs on them, as they were some seconds ago at most; none
    if nobody says which brokers there are, or not to this user.
    """
    return viewer.shared.get("disks", SLOW_MS, lambda: _ask_for_disks(viewer, with_replicas=True))


def _disks_alone(viewer: Viewer) -> list[Disk]:
    """The same without the logs, of which a broker may have ten thousand."""
    return viewer.shared.get("disks alone", SLOW_MS, lambda: _ask_for_disks(viewer, with_replicas=False))


def _ask_for_disks(viewer: Viewer, *, with_replicas: bool) -> list[Disk]:
    try:
        brokers = serving_brokers(viewer.report())
    except (KafkaError, ClusterUnavailable):
        return []
    return disks_of(viewer.cluster, brokers, with_replicas=with_replicas)


def serving_brokers(report: ClusterReportResponse) -> list[int]:
    return [one.broker_id for one in report.brokers if one.state in (SERVING, "stopping")]


def _figures(viewer: Viewer, report: ClusterReportResponse) -> dict[str, object]:
    """The last hour of all brokers that serve."""
    brokers = serving_brokers(report)
    viewer.shared.get("figures", FIGURES_MS, lambda: ask_each(brokers, viewer.figures.follow))
    return viewer.figures.of_cluster(brokers)


def _losses(viewer: Viewer) -> list[PossibleLoss]:
    def ask() -> list[PossibleLoss]:
        try:
            deadline = viewer.cluster.deadline(LOSSES_TIMEOUT_MS)
            return possible_losses(viewer.cluster, viewer.metadata(), deadline)
        except ClusterUnavailable:
            return []  # the controller answers alone, and the verdict is about brokers

    return viewer.shared.get("losses", SLOW_MS, ask)


def _largest_lag(viewer: Viewer) -> dict[str, object] | None:
    """The group that lags most; None if there is no group, or none that could be looked at."""
    try:
        groups = viewer.lags().groups.values()
    except (OSError, SparklogError):
        return None  # the verdict is about what does not answer
    worst = max(groups, key=lambda group: group.lag, default=None)
    return None if worst is None else {"group_id": worst.listing.group_id, "lag": worst.lag}


def _cluster_id(viewer: Viewer) -> str | None:
    return viewer.cluster.latest_metadata.cluster_id


def _fullest(disks: list[Disk]) -> dict[str, object] | None:
    known = [disk for disk in disks if disk.total_bytes > 0]
    if not known:
        return None
    fullest = max(known, key=lambda disk: disk.used_share)
    named = ("broker_id", "log_dir", "total_bytes", "free_bytes", "floor_bytes", "used_share")
    return {name: getattr(fullest, name) for name in named}
