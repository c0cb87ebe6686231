"""All checks over the facts of a cluster, the worst findings first. PURE."""

from typing import Final

from sparklog.cli.cluster.doctor.checks.broker_check import BROKERS
from sparklog.cli.cluster.doctor.checks.certificate_expiry_check import CERTIFICATES
from sparklog.cli.cluster.doctor.checks.descriptor_check import FILES
from sparklog.cli.cluster.doctor.checks.device_check import DEVICES
from sparklog.cli.cluster.doctor.checks.disk_check import DISKS
from sparklog.cli.cluster.doctor.checks.group_check import GROUPS
from sparklog.cli.cluster.doctor.checks.isr_check import ISR
from sparklog.cli.cluster.doctor.checks.release_check import RELEASES
from sparklog.cli.cluster.doctor.checks.setting_check import SETTINGS
from sparklog.cli.cluster.doctor.checks.spark_check import SPARK
from sparklog.cli.cluster.doctor.checks.topic_check import TOPICS
from sparklog.cli.cluster.doctor.checks.transaction_check import TRANSACTIONS
from sparklog.cli.cluster.doctor.checks.zookeeper_check import ZOOKEEPER
from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts
from sparklog.cli.cluster.doctor.doctor_finding import WORST_FIRST, Finding, Severity

CHECKS: Final = (
    BROKERS,
    ISR,
    DISKS,
    DEVICES,
    FILES,
    TOPICS,
    TRANSACTIONS,
    GROUPS,
    ZOOKEEPER,
    CERTIFICATES,
    SETTINGS,
    RELEASES,
    SPARK,
)
"""In the order in which findings of one severity are shown."""

CLUSTER: Final = "cluster"


def examine(facts: ClusterFacts) -> list[Finding]:
    """At least one finding of each check."""
    findings = [finding for check in CHECKS for finding in _findings_of(check, facts)]
    findings.sort(key=lambda finding: WORST_FIRST.index(finding.severity))
    return findings


def _findings_of(check: Check, facts: ClusterFacts) -> list[Finding]:
    for part in check.needs:
        if part in facts.unknown:
            return [_not_examined(check, facts.unknown[part], facts.options)]
    return list(check.examine(facts)) or [Finding(check.name, Severity.ok, CLUSTER, check.well)]


def _not_examined(check: Check, reason: str, options: str) -> Finding:
    return Finding(
        check.name,
        Severity.note,
        CLUSTER,
        f"not examined: {reason}",
        "what this check would find stays unknown",
        f"mend that, then again: sparklog doctor {options}",
    )
