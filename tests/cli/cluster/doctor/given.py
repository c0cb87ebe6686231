"""Facts of a cluster that is well, from which each test takes something away."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, SeenBroker, SeenTopic
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity
from sparklog.cli.cluster.doctor.examination import examine
from sparklog.client.changes import LogDirDescription
from sparklog.client.metadata.cluster_metadata import PartitionMetadata, TopicMetadata
from sparklog.model.cluster_facts import Node
from sparklog.model.ids import NO_TOPIC_ID, BrokerId
from sparklog.wire.messages.discovery.broker_report import BrokerReportResponse, ReportedDirectory
from sparklog.wire.messages.discovery.cluster_report import (
    ClusterReportResponse,
    ReportedBroker,
    ReportedController,
)

OPTIONS: Final = "--root R"
GB: Final = 1_000_000_000
SETTINGS: Final = {
    "zookeeper.connect": "z1:2181,z2:2181,z3:2181/sparklog",
    "zookeeper.session.timeout.ms": "18000",
    "log.dirs.free.min.bytes": "-1",
    "transaction.max.timeout.ms": "900000",
}


def directory(free_bytes: int = 500 * GB, total_bytes: int = 1_000 * GB, **fields: Any) -> LogDirDescription:
    known = {"is_offline": False, "replicas": {}, **fields}
    return LogDirDescription(total_bytes=total_bytes, usable_bytes=free_bytes, **known)


def topic(
    name: str = "orders",
    *,
    replicas: Sequence[int] = (1, 2, 3),
    isr: Sequence[int] | None = None,
    leader: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> SeenTopic:
    """One partition, whose first replica leads."""
    partition = PartitionMetadata(
        0,
        BrokerId(replicas[0] if leader is None else leader),
        0,
        tuple(replicas),
        tuple(replicas if isr is None else isr),
    )
    known = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false", **(settings or {})}
    return SeenTopic(metadata=TopicMetadata(name, NO_TOPIC_ID, {0: partition}), settings=known)


def reported(broker: int, state: str = "serving", **fields: Any) -> ReportedBroker:
    known = {"host": f"h{broker}", "port": 9092, "release": "1.0", "wish": "serving", **fields}
    return ReportedBroker(broker_id=broker, state=state, **known)


def report(*brokers: ReportedBroker, **fields: Any) -> ClusterReportResponse:
    driver = ReportedController(application="a", host="h0", port=9091, is_active=True, release="1.0")
    known = {"controllers": [driver], "partitions": 1, **fields}
    return ClusterReportResponse(brokers=list(brokers or map(reported, (1, 2, 3))), **known)


def broker(number: int, settings: Mapping[str, str] | None = None, **fields: Any) -> SeenBroker:
    known = {"log_dirs": {"/data": directory()}, **fields}
    return SeenBroker(broker_id=number, host=f"h{number}", settings={**SETTINGS, **(settings or {})}, **known)


def own_report(number: int, **fields: Any) -> BrokerReportResponse:
    disk = ReportedDirectory(path="/data", device="8:1", total_inodes=1_000_000, free_inodes=900_000)
    known = {"open_files": 300, "open_files_max": 100_000, "directories": [disk], **fields}
    return BrokerReportResponse(broker_id=number, host=f"h{number}", **known)


WELL: Final = ClusterFacts(
    options=OPTIONS,
    now_ms=1_700_000_000_000,
    report=report(),
    nodes=tuple(Node(BrokerId(number), f"h{number}", 9092, rack=f"r{number}") for number in (1, 2, 3)),
    brokers=tuple(map(broker, (1, 2, 3))),
    own_reports={number: own_report(number) for number in (1, 2, 3)},
    topics=(topic(),),
)


def found(check: str, **changes: Any) -> list[Finding]:
    """What one check finds in a cluster that is well but for ``changes``; nothing else may be found."""
    findings = examine(replace(WELL, **changes))
    return [finding for finding in findings if finding.check == check and finding.severity is not Severity.ok]


def the_one(check: str, **changes: Any) -> Finding:
    (finding,) = found(check, **changes)
    assert finding.harm, "each finding says its harm"
    assert finding.remedy, "each finding has a remedy"
    return finding
