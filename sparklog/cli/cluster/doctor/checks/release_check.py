"""Brokers and drivers of different releases. PURE."""

from collections.abc import Iterator
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity, listed
from sparklog.model.cluster_facts import host_port

NAME: Final = "releases"


def examine_releases(facts: ClusterFacts) -> Iterator[Finding]:
    if facts.report is None:
        return
    found: dict[str, list[str]] = {}
    for broker in facts.report.brokers:
        if broker.release and broker.state == "serving":
            found.setdefault(broker.release, []).append(f"broker {broker.broker_id}")
    for driver in facts.report.controllers:
        if driver.release:
            found.setdefault(driver.release, []).append(f"driver {host_port(driver.host, driver.port)}")
    if len(found) < 2:
        return
    releases = "; ".join(f"{release}: {listed(who)}" for release, who in found.items())
    yield Finding(
        NAME,
        Severity.warning,
        "cluster",
        releases,
        "right during an upgrade; for longer, what the newer one can do is not to be had at each broker",
        "install one release everywhere, start the drivers again, then: sparklog brokers restart --all "
        f"{facts.options}",
    )


RELEASES: Final = Check(NAME, (Part.report,), "brokers and drivers have the same release", examine_releases)
