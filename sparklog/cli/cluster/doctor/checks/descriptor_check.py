"""How near a broker's process is to the limit of its open files. PURE."""

from collections.abc import Iterator
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity

NAME: Final = "files"
MANY_SHARE: Final = 0.8
NEARLY_ALL_SHARE: Final = 0.95


def examine_descriptors(facts: ClusterFacts) -> Iterator[Finding]:
    for broker, report in sorted(facts.own_reports.items()):
        opened, limit = report.open_files, report.open_files_max
        if opened < 0 or limit <= 0 or opened < MANY_SHARE * limit:
            continue
        yield Finding(
            NAME,
            Severity.grave if opened >= NEARLY_ALL_SHARE * limit else Severity.warning,
            f"broker {broker}",
            f"{opened} of {limit} open files are used ({opened / limit:.0%})",
            "at the limit it accepts no connection and opens no segment: log directories go offline",
            f"a higher limit (ulimit -n, LimitNOFILE) for Spark's worker on {report.host}, then start it "
            "again; or fewer partitions for each broker",
        )


FILES: Final = Check(
    NAME,
    (Part.brokers, Part.own_reports),
    "brokers are far from their limits of open files",
    examine_descriptors,
)
