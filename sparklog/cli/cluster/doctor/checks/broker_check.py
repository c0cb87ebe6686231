"""Brokers that should serve and do not, and whether a controller is in office. PURE."""

from collections.abc import Iterator
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity
from sparklog.wire.messages.discovery.cluster_report import ReportedBroker

NAME: Final = "brokers"
OLD_MS: Final = 10_000
"""From this age on a broker's copy of the report is no news: it cannot ask a controller."""

SERVING: Final = "serving"
STOPPED: Final = "stopped"
DRAINED: Final = "drained"
ON_THE_WAY: Final = ("starting", "recovering", "stopping", "draining")
WAITS_FOR_PEOPLE: Final = ("no executor", "crash loop")
"""States that do not end by themselves."""


def examine_brokers(facts: ClusterFacts) -> Iterator[Finding]:
    if facts.silence:
        yield Finding(
            NAME,
            Severity.grave,
            "cluster",
            f"no broker answers: {facts.silence}",
            "nothing is written or read",
            f"sparklog status {facts.options} says why each broker is away; start one, or its application",
        )
    yield from _office(facts)
    for broker in [] if facts.report is None else facts.report.brokers:
        yield from _reported(broker, facts.options)
    for seen in facts.brokers:
        if seen.silence:
            yield Finding(
                NAME,
                Severity.warning,
                f"broker {seen.broker_id}",
                f"is registered and does not answer: {seen.silence}",
                "its settings and disks are not examined; clients that ask it wait",
                f"see its log on {seen.host}; if it hangs: sparklog brokers restart {seen.broker_id} "
                f"{facts.options}",
            )


def _office(facts: ClusterFacts) -> Iterator[Finding]:
    report = facts.report
    if report is None or report.age_ms < OLD_MS:
        return
    yield Finding(
        NAME,
        Severity.grave,
        "controller",
        f"no controller that reaches ZooKeeper has answered for {report.age_ms // 1_000} s",
        "no leader is elected, and no topic or setting changes, until one is in office",
        "read controller.log of each driver; look at ZooKeeper; start a standby: sparklog start --brokers 0",
    )


def _reported(broker: ReportedBroker, options: str) -> Iterator[Finding]:
    if broker.state == SERVING:
        return
    subject, reason = f"broker {broker.broker_id}", f": {broker.reason}" if broker.reason else ""
    if broker.wish in (STOPPED, DRAINED):
        yield _unwanted(broker, options)
        return
    severity = Severity.grave if broker.state in WAITS_FOR_PEOPLE else Severity.warning
    if broker.state in ON_THE_WAY:
        severity = Severity.note
    yield Finding(
        NAME,
        severity,
        subject,
        f"does not serve; it is {broker.state or 'away'}{reason}",
        "its replicas are out of sync; the death of another broker may stop writes",
        f"sparklog events --broker {broker.broker_id} {options} says what happened to it",
    )


def _unwanted(broker: ReportedBroker, options: str) -> Finding:
    """A broker that is away, or leaves, because somebody wished it."""
    number, is_away = broker.broker_id, broker.state == broker.wish
    value = f"is {broker.state}, as somebody wished"
    if not is_away:
        value = f"is {broker.state}, and somebody wished it {broker.wish}"
    harm, remedy = (
        "its replicas are out of sync until it is back",
        f"sparklog brokers start {number} {options}",
    )
    if not broker.replicas:
        value += "; it holds no replicas"
        harm = "none"
        if is_away and broker.wish == DRAINED:
            remedy = f"sparklog brokers remove {number} {options}; or {remedy}, then fill {number}"
    return Finding(NAME, Severity.note, f"broker {number}", value, harm, remedy)


BROKERS: Final = Check(
    NAME, (), "a controller is in office, and every broker whose wish is to serve serves", examine_brokers
)
