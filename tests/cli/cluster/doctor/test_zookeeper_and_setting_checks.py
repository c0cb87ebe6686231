"""ZooKeeper as brokers name it, and what differs between brokers."""

import pytest

from sparklog.cli.cluster.doctor.checks.setting_check import DURABILITY, OF_ITS_OWN
from sparklog.cli.cluster.doctor.doctor_finding import Severity
from sparklog.model.settings.settings_table import BROKER_SETTINGS, IDENTITY_SETTINGS
from sparklog.wire.messages.discovery.broker_report import ReportedMetric, ReportedSeries
from tests.cli.cluster.doctor.given import WELL, broker, found, own_report, report, reported, the_one

CONNECT = "zookeeper.connect"
TIMEOUT = "zookeeper.session.timeout.ms"


def test_one_address_is_a_warning_where_brokers_are_on_several_hosts() -> None:
    alone = tuple(broker(number, {CONNECT: "z1:2181/a"}) for number in (1, 2, 3))
    finding = the_one("zookeeper", brokers=alone)
    assert (finding.severity, "z1:2181/a" in finding.value) == (Severity.warning, True)
    assert the_one("zookeeper", brokers=alone[:1], nodes=WELL.nodes[:1]).severity is Severity.note


def test_an_even_number_of_members_is_a_note() -> None:
    finding = the_one("zookeeper", brokers=(broker(1, {CONNECT: "a:1,b:1,c:1,d:1"}),))
    assert (finding.severity, finding.value) == (Severity.note, "zookeeper.connect names 4 members")
    assert found("zookeeper", brokers=(broker(1, {CONNECT: "a:1,b:1,c:1"}),)) == []


@pytest.mark.parametrize(
    ("timeout_ms", "severities"),
    [(5_999, [Severity.warning]), (6_000, []), (40_000, []), (40_001, [Severity.note])],
)
def test_session_timeouts_have_limits(timeout_ms: int, severities: list[Severity]) -> None:
    findings = found("zookeeper", brokers=(broker(1), broker(2, {TIMEOUT: str(timeout_ms)})))
    assert [one.severity for one in findings] == severities
    assert all(one.subject == "broker 2" for one in findings)


def with_zookeeper(slowest_ms: int, session_ms: int) -> list[ReportedMetric]:
    values = {"slowest_answer": slowest_ms, "session": session_ms}
    return [
        ReportedMetric(
            name=f"sparklog_broker_zookeeper_{name}_milliseconds",
            kind="gauge",
            doc="",
            series=[ReportedSeries(labels=[], value=float(value))],
        )
        for name, value in values.items()
    ]


@pytest.mark.parametrize(
    ("slowest_ms", "severity"),
    [(1_799, None), (1_800, Severity.warning), (5_999, Severity.warning), (6_000, Severity.grave)],
)
def test_answers_of_zookeeper_are_slow_by_the_length_of_a_session(
    slowest_ms: int, severity: Severity | None
) -> None:
    reports = {2: own_report(2, metrics=with_zookeeper(slowest_ms, 18_000))}
    findings = found("zookeeper", own_reports=reports)
    assert [one.severity for one in findings] == ([] if severity is None else [severity])
    assert all(one.subject == "broker 2" and f"up to {slowest_ms} ms" in one.value for one in findings)


@pytest.mark.parametrize(
    ("granted_ms", "severity", "limit"),
    [(12_000, Severity.warning, "maxSessionTimeout"), (24_000, Severity.note, "minSessionTimeout")],
)
def test_a_session_that_zookeeper_grants_otherwise_than_asked_for(
    granted_ms: int, severity: Severity, limit: str
) -> None:
    asked = tuple(broker(number, {TIMEOUT: "18000"}) for number in (1, 2))
    reports = {number: own_report(number, metrics=with_zookeeper(1, granted_ms)) for number in (1, 2)}
    finding = the_one("zookeeper", brokers=asked, own_reports=reports)
    assert (finding.severity, finding.subject) == (severity, "brokers 1, 2")
    assert finding.value == f"{TIMEOUT}=18000, and ZooKeeper grants {granted_ms}"
    assert limit in finding.remedy
    as_asked = {1: own_report(1, metrics=with_zookeeper(1, 18_000)), 2: own_report(2)}
    assert found("zookeeper", brokers=asked, own_reports=as_asked) == []


def test_a_setting_that_decides_what_is_kept_differs() -> None:
    brokers = (broker(1, {"log.flush.acks": "fsync"}), broker(2, {"log.flush.acks": "written"}))
    finding = the_one("settings", brokers=brokers)
    assert (finding.severity, finding.subject) == (Severity.warning, "log.flush.acks")
    assert finding.value == "fsync at broker 1; written at broker 2"


def test_another_setting_that_differs_is_a_note() -> None:
    brokers = (broker(1, {"num.io.threads": "2"}), broker(2, {"num.io.threads": "8"}), broker(3))
    finding = the_one("settings", brokers=brokers)
    assert finding.severity is Severity.note
    assert finding.value == "2 at broker 1; 8 at broker 2; (empty) at broker 3"


@pytest.mark.parametrize(
    "name",
    [
        "broker.id",
        "listeners",
        "log.dirs",
        "broker.rack",
        "metrics.port",
        "web.port",
        "listener.name.internal.ssl.keystore.location",
        "ssl.truststore.location",
    ],
)
def test_what_each_broker_has_of_its_own_may_differ(name: str) -> None:
    assert found("settings", brokers=(broker(1, {name: "1"}), broker(2, {name: "2"}))) == []


def test_settings_that_are_warned_of_are_settings() -> None:
    assert DURABILITY - {"zookeeper.connect"} <= BROKER_SETTINGS.keys()
    assert OF_ITS_OWN - {"log.dir"} <= BROKER_SETTINGS.keys() | IDENTITY_SETTINGS.keys()


def test_a_silent_broker_has_no_settings_to_compare() -> None:
    silent = broker(2, {"log.flush.acks": "fsync"}, silence="timed out")
    assert found("settings", brokers=(broker(1), silent)) == []


def test_releases_that_differ() -> None:
    finding = the_one("releases", report=report(reported(1), reported(2, release="1.1")))
    assert finding.severity is Severity.warning
    assert finding.value == "1.0: broker 1, driver h0:9091; 1.1: broker 2"


def test_what_spark_settings_of_an_application_lack() -> None:
    lacking = report()
    lacking.controllers[0].spark_warnings = ["spark.task.maxFailures=4: set 1", "another"]
    findings = found("spark", report=lacking)
    assert [(one.severity, one.subject) for one in findings] == [(Severity.warning, "application a")] * 2
    assert findings[0].value == "spark.task.maxFailures=4: set 1"


def test_the_release_of_a_broker_that_is_away_is_no_matter() -> None:
    assert found("releases", report=report(reported(1), reported(2, "away", release="0.9"))) == []
