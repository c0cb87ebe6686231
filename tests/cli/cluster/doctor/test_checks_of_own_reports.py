"""What brokers know of their own hosts: inodes, disks that directories share, open files, certificates."""

import pytest

from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity
from sparklog.wire.messages.discovery.broker_report import (
    ReportedDirectory,
    ReportedLabel,
    ReportedMetric,
    ReportedSeries,
)
from tests.cli.cluster.doctor.given import WELL, found, own_report, the_one

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("free", "severity"),
    [(50_000, None), (49_999, Severity.warning), (9_999, Severity.grave), (0, Severity.grave), (-1, None)],
)
def test_inodes_that_run_out(free: int, severity: Severity | None) -> None:
    disk = ReportedDirectory(path="/data", device="8:1", total_inodes=1_000_000, free_inodes=free)
    findings = found("devices", own_reports={1: own_report(1, directories=[disk])})
    assert [one.severity for one in findings] == ([] if severity is None else [severity])
    assert all(f"{free} of 1000000 inodes" in one.value for one in findings)


def test_a_file_system_without_inodes_is_not_judged() -> None:
    disk = ReportedDirectory(path="/data", device="8:1", total_inodes=0, free_inodes=0)
    assert found("devices", own_reports={1: own_report(1, directories=[disk])}) == []


def of_paths(**devices: str) -> list[ReportedDirectory]:
    return [ReportedDirectory(path=f"/{name}", device=device) for name, device in devices.items()]


def test_two_directories_on_one_disk() -> None:
    finding = the_one(
        "devices", own_reports={2: own_report(2, directories=of_paths(a="8:1", b="8:1", c="8:2"))}
    )
    assert (finding.severity, finding.subject) == (Severity.warning, "broker 2")
    assert finding.value.endswith("/a, /b")


def test_a_disk_that_does_not_answer_and_one_that_is_offline_share_nothing() -> None:
    unknown = of_paths(a="", b="")
    broken = [*of_paths(a="8:1"), ReportedDirectory(path="/b", is_online=False, device="8:1")]
    assert found("devices", own_reports={1: own_report(1, directories=unknown)}) == []
    assert found("devices", own_reports={1: own_report(1, directories=broken)}) == []


def test_brokers_of_one_host_on_one_disk() -> None:
    reports = {number: own_report(number) for number in (1, 2, 3)}
    reports[2].host = reports[1].host
    finding = the_one("devices", own_reports=reports)
    assert (finding.severity, finding.subject) == (Severity.note, "brokers 1, 2")
    assert "disk of host h1" in finding.value


@pytest.mark.parametrize(
    ("opened", "severity"),
    [(799, None), (800, Severity.warning), (949, Severity.warning), (950, Severity.grave), (-1, None)],
)
def test_open_files_near_their_limit(opened: int, severity: Severity | None) -> None:
    findings = found("files", own_reports={3: own_report(3, open_files=opened, open_files_max=1_000)})
    assert [one.severity for one in findings] == ([] if severity is None else [severity])
    assert all(one.subject == "broker 3" and f"{opened} of 1000" in one.value for one in findings)


def with_certificate(left_days: float) -> list[Finding]:
    expiry = WELL.now_ms + left_days * DAY_MS
    labels = [ReportedLabel(name="listener", value="SSL")]
    metric = ReportedMetric(
        name="sparklog_broker_certificate_expiry_milliseconds",
        kind="gauge",
        doc="",
        series=[ReportedSeries(labels=labels, value=expiry)],
    )
    return found("certificates", own_reports={1: own_report(1, metrics=[metric])})


@pytest.mark.parametrize(
    ("left_days", "severity", "words"),
    [
        (29.5, Severity.warning, "expires in 29 days"),
        (6.5, Severity.grave, "expires in 6 days"),
        (-2.5, Severity.grave, "expired 2 days ago"),
    ],
)
def test_certificates_that_expire(left_days: float, severity: Severity, words: str) -> None:
    (finding,) = with_certificate(left_days)
    assert (finding.severity, finding.subject) == (severity, "listener SSL of broker 1")
    assert words in finding.value


def test_a_certificate_for_longer_is_well() -> None:
    assert with_certificate(30) == []
