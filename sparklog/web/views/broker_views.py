"""``/brokers`` and ``/brokers/N``: every broker that has registered, also one that is away."""

from dataclasses import asdict
from typing import Final

from sparklog.client.cluster_reports import report_of_broker
from sparklog.client.settings import describe_broker
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.kafka_numbers import ConfigSource
from sparklog.web.disks import ANSWER_TIMEOUT_MS, Disk
from sparklog.web.shown_commands import of_broker, shown
from sparklog.web.view_question import NothingThere, Question
from sparklog.web.viewer import SLOW_MS, Viewer
from sparklog.web.views.event_rows import event_row
from sparklog.web.views.overview import FIGURES_MS, known_disks
from sparklog.wire.messages.discovery.broker_report import BrokerReportRequest
from sparklog.wire.messages.discovery.cluster_report import ReportedBroker

EVENTS_OF_BROKER: int = 20
WARNINGS_SHOWN: Final = 50
PROCESS: Final = ("host", "pid", "started_ms", "memory_bytes", "cores", "open_files", "open_files_max")


def brokers(viewer: Viewer, _: Question) -> dict[str, object]:
    report = viewer.report()
    disks = known_disks(viewer)
    return {
        "age_ms": report.age_ms,
        "brokers": [_row(one, disks) for one in report.brokers],
        "controllers": [asdict(one) for one in report.controllers],
        "commands": [
            shown(viewer.options, "brokers list"),
            shown(viewer.options, "brokers restart --all", does="To restart all, one at a time"),
        ],
    }


def broker(viewer: Viewer, question: Question) -> dict[str, object]:
    wanted = question.number("broker", 0, most=2**31 - 1)
    report = viewer.report()
    found = next((one for one in report.brokers if one.broker_id == wanted), None)
    if found is None:
        raise NothingThere(f"no broker {wanted} has registered")
    disks = [disk for disk in known_disks(viewer) if disk.broker_id == wanted]
    events = [event for event in reversed(viewer.events().kept) if wanted in event.brokers]
    return {
        "age_ms": report.age_ms,
        "broker": _row(found, disks),
        "log_dirs": [disk.as_json() for disk in disks],
        "process": viewer.shared.get(("process", wanted), FIGURES_MS, lambda: _process(viewer, wanted)),
        "figures": viewer.figures.of_broker(wanted, question.number("after", -1, least=-1, most=2**53)),
        "warnings": viewer.shared.get(("warnings", wanted), SLOW_MS, lambda: _warnings(viewer, wanted)),
        "settings": viewer.shared.get(("settings", wanted), SLOW_MS, lambda: _settings(viewer, wanted)),
        "events": [event_row(event) for event in events[:EVENTS_OF_BROKER]],
        "commands": [of_broker(viewer.options, found)],
    }


def _row(one: ReportedBroker, disks: list[Disk]) -> dict[str, object]:
    own = [disk for disk in disks if disk.broker_id == one.broker_id]
    fullest = max(own, key=lambda disk: disk.used_share, default=None)
    return {
        **asdict(one),
        "since_ms": None if one.since_ms < 0 else one.since_ms,
        "relaunches": None if one.relaunches < 0 else one.relaunches,
        "disk": None if fullest is None else {**fullest.as_json(), "used_share": fullest.used_share},
        "log_bytes": sum(replica.size_bytes for disk in own for replica in disk.replicas.values()),
        "offline_log_dirs": [disk.log_dir for disk in own if disk.is_offline],
    }


def _process(viewer: Viewer, broker_id: int) -> dict[str, object] | None:
    """What the broker says of its process; None if it does not answer, or is of an older release."""
    try:
        report = viewer.figures.follow(broker_id)
    except (OSError, SparklogError):
        return None  # its row says in which state it is
    return {name: getattr(report, name) for name in PROCESS}


def _warnings(viewer: Viewer, broker_id: int) -> dict[str, object]:
    """The newest first, or why there are none."""
    request = BrokerReportRequest(warnings_max=WARNINGS_SHOWN)
    try:
        report = report_of_broker(viewer.cluster, broker_id, request, timeout_ms=ANSWER_TIMEOUT_MS)
    except KafkaError as error:
        is_denied = error.code is ErrorCode.cluster_authorization_failed
        return {"why_none": "they are for users with ALTER on the cluster" if is_denied else str(error)}
    except (OSError, SparklogError):
        return {"why_none": "the broker does not answer"}
    return {"rows": [asdict(one) for one in reversed(report.warnings)], "total": report.last_warning}


def _settings(viewer: Viewer, broker_id: int) -> list[dict[str, object]] | None:
    """Those that are not the defaults; None if the broker does not answer."""
    try:
        described = describe_broker(viewer.cluster, broker_id, timeout_ms=ANSWER_TIMEOUT_MS)
    except SparklogError:
        return None  # its row says in which state it is
    return [
        {"name": one.name, "value": one.value, "source": one.source.name.lower().replace("_", " ")}
        for one in sorted(described.values(), key=lambda one: one.name)
        if one.source is not ConfigSource.DEFAULT
    ]
