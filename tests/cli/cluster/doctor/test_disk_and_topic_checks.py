"""Disks that fail or fill, and topics that are less safe than they look."""

from collections.abc import Mapping, Sequence

import pytest

from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity
from sparklog.model.cluster_facts import Node
from sparklog.model.ids import BrokerId
from tests.cli.cluster.doctor.given import (
    GB,
    WELL,
    broker,
    directory,
    found,
    report,
    reported,
    the_one,
    topic,
)


def test_a_directory_that_failed_is_grave() -> None:
    broken = broker(2, log_dirs={"/b": directory(is_offline=True), "/a": directory()})
    finding = the_one("disks", brokers=(broker(1), broken))
    assert (finding.severity, finding.subject) == (Severity.grave, "/b of broker 2")


@pytest.mark.parametrize(
    ("free", "setting", "severity"),
    [
        (GB - 1, "-1", Severity.grave),
        (50 * GB, "-1", Severity.warning),
        (100 * GB, "-1", None),
        (0, "0", Severity.warning),
        (300 * GB, str(301 * GB), Severity.grave),
        (300 * GB, str(200 * GB), Severity.warning),
    ],
)
def test_a_disk_is_judged_by_its_floor_and_size(free: int, setting: str, severity: Severity | None) -> None:
    full = broker(2, {"log.dirs.free.min.bytes": setting}, log_dirs={"/data": directory(free)})
    findings = found("disks", brokers=(broker(1), full))
    assert [one.severity for one in findings] == ([] if severity is None else [severity])
    assert all(f"{free} of {1_000 * GB} bytes" in one.value and one.remedy for one in findings)


def test_a_size_that_is_unknown_is_not_judged() -> None:
    assert found("disks", brokers=(broker(1, log_dirs={"/data": directory(-1, -1)}),)) == []


def of_topic(replicas: Sequence[int] = (1, 2, 3), settings: Mapping[str, str] | None = None) -> Finding:
    return the_one("topics", topics=(topic(replicas=replicas, settings=settings), topic("well")))


def test_a_topic_with_one_replica() -> None:
    finding = of_topic((1,), {"min.insync.replicas": "1"})
    assert (finding.severity, finding.subject) == (Severity.warning, "topic orders")


def test_one_broker_cannot_have_more_than_one_replica() -> None:
    alone = topic(replicas=(1,), settings={"min.insync.replicas": "1"})
    finding = the_one("topics", topics=(alone,), nodes=WELL.nodes[:1], report=report(reported(1)))
    assert finding.severity is Severity.note


def test_a_minimum_of_one_with_several_replicas() -> None:
    finding = of_topic(settings={"min.insync.replicas": "1"})
    assert finding.severity is Severity.warning
    assert finding.remedy == "sparklog topics alter orders --config min.insync.replicas=2 --root R"


def test_a_minimum_that_leaves_no_broker_to_spare() -> None:
    assert of_topic(settings={"min.insync.replicas": "3"}).severity is Severity.warning


def test_a_minimum_that_no_partition_can_have() -> None:
    assert of_topic((1, 2), {"min.insync.replicas": "3"}).severity is Severity.grave


def test_elections_that_may_lose_records() -> None:
    finding = of_topic(settings={"unclean.leader.election.enable": "true"})
    assert finding.severity is Severity.warning
    assert "unclean.leader.election.enable=false" in finding.remedy


@pytest.mark.parametrize("noun", ["host", "rack"])
def test_all_replicas_in_one_place_of_several(noun: str) -> None:
    places = ("a", "a", "b")
    nodes = tuple(
        Node(BrokerId(number), place if noun == "host" else f"h{number}", 9092, rack=place)
        for number, place in enumerate(places, start=1)
    )
    findings = found("topics", topics=(topic(replicas=(1, 2)), topic("well")), nodes=nodes)
    assert {one.subject for one in findings} == {"topic orders"}
    assert any(f"all their replicas in one {noun}, of 2" in one.value for one in findings)


def test_racks_count_only_where_every_broker_names_one() -> None:
    racks = ("a", "a", None)
    nodes = tuple(
        Node(BrokerId(number), f"h{number}", 9092, rack=rack) for number, rack in enumerate(racks, start=1)
    )
    loose = topic(replicas=(1, 2), settings={"min.insync.replicas": "2"})
    assert "rack" not in " ".join(one.value for one in found("topics", topics=(loose,), nodes=nodes))
