"""Certificates of brokers' listeners that have expired, or will soon. PURE."""

from collections.abc import Iterator
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity
from sparklog.wire.messages.discovery.broker_report import BrokerReportResponse

NAME: Final = "certificates"
EXPIRY_METRIC: Final = "sparklog_broker_certificate_expiry_milliseconds"
DAY_MS: Final = 86_400_000
SOON_DAYS: Final = 30
VERY_SOON_DAYS: Final = 7


def examine_certificates(facts: ClusterFacts) -> Iterator[Finding]:
    for broker, report in sorted(facts.own_reports.items()):
        for listener, expiry_ms in _expiries_ms(report):
            left_ms = expiry_ms - facts.now_ms
            if left_ms < SOON_DAYS * DAY_MS:
                yield _soon(f"listener {listener} of broker {broker}", left_ms)


def _expiries_ms(report: BrokerReportResponse) -> Iterator[tuple[str, float]]:
    for metric in report.metrics:
        if metric.name == EXPIRY_METRIC:
            for one in metric.series:
                yield ", ".join(label.value for label in one.labels), one.value


def _soon(subject: str, left_ms: float) -> Finding:
    days = int(abs(left_ms) // DAY_MS)
    return Finding(
        NAME,
        Severity.grave if left_ms < VERY_SOON_DAYS * DAY_MS else Severity.warning,
        subject,
        f"its certificate expires in {days} days"
        if left_ms >= 0
        else f"its certificate expired {days} days ago",
        "clients and brokers refuse an expired certificate: nobody connects there any more",
        "sparklog security renew DIR, or replace its file by renaming: brokers read it while they run",
    )


CERTIFICATES: Final = Check(
    NAME,
    (Part.brokers, Part.own_reports),
    f"no certificate of a listener expires within {SOON_DAYS} days",
    examine_certificates,
)
