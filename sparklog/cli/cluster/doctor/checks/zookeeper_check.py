"""Whether ZooKeeper survives the loss of a member, and whether sessions survive a pause. PURE."""

from collections.abc import Iterator
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity, named
from sparklog.wire.messages.discovery.broker_report import BrokerReportResponse

NAME: Final = "zookeeper"
CONNECT: Final = "zookeeper.connect"
SESSION_TIMEOUT: Final = "zookeeper.session.timeout.ms"
SESSION_MIN_MS: Final = 6_000
SESSION_MAX_MS: Final = 40_000
"""A server's own limit, unless its maxSessionTimeout or tickTime says another: 20 ticks of 2 s."""

SLOWEST_METRIC: Final = "sparklog_broker_zookeeper_slowest_answer_milliseconds"
SESSION_METRIC: Final = "sparklog_broker_zookeeper_session_milliseconds"
SLOW_SHARE: Final = 0.1
"""A part of the session: with answers as slow, a few in a row end it."""
VERY_SLOW_SHARE: Final = 1 / 3
"""After as long without an answer clients look for another server."""


def examine_zookeeper(facts: ClusterFacts) -> Iterator[Finding]:
    yield from _answers(facts)
    yield from _granted(facts)
    addresses = [text for broker in facts.answering if (text := broker.settings.get(CONNECT))]
    if addresses:
        yield from _members(addresses[0], facts)
    short: list[int] = []
    long: list[int] = []
    for broker in facts.answering:
        timeout_ms = int(broker.settings.get(SESSION_TIMEOUT, SESSION_MIN_MS))
        short += [broker.broker_id] if timeout_ms < SESSION_MIN_MS else []
        long += [broker.broker_id] if timeout_ms > SESSION_MAX_MS else []
    if short:
        yield Finding(
            NAME,
            Severity.warning,
            named("broker", short),
            f"{SESSION_TIMEOUT} is below {SESSION_MIN_MS}",
            "a pause of some seconds, of a disk or a busy host, ends the session, and others are elected",
            f"{SESSION_TIMEOUT}=18000 in the settings, then: sparklog brokers restart --all {facts.options}",
        )
    if long:
        yield Finding(
            NAME,
            Severity.note,
            named("broker", long),
            f"{SESSION_TIMEOUT} is above {SESSION_MAX_MS}",
            "servers grant 20 ticks at most, which is 40 s by default; a cut is noticed as late as that",
            f"a shorter {SESSION_TIMEOUT}, or a larger maxSessionTimeout of the servers",
        )


def _members(address: str, facts: ClusterFacts) -> Iterator[Finding]:
    count = len(address.partition("/")[0].split(","))
    if count == 1:
        on_one_host = len({node.host for node in facts.nodes}) < 2
        yield Finding(
            NAME,
            Severity.note if on_one_host else Severity.warning,
            "ZooKeeper",
            f"{CONNECT} names one address: {address}",
            "if that is one server, without it no leader is elected and no broker starts"
            + ("; all brokers are on one host as well" if on_one_host else ""),
            f"an ensemble of three on three hosts, all named in {CONNECT}",
        )
    elif count % 2 == 0:
        yield Finding(
            NAME,
            Severity.note,
            "ZooKeeper",
            f"{CONNECT} names {count} members",
            f"an even number survives the loss of no more members than {count - 1} do",
            f"{count - 1} or {count + 1} members",
        )


def _answers(facts: ClusterFacts) -> Iterator[Finding]:
    """Whether ZooKeeper answers fast, by the clock of each broker."""
    slow: dict[Severity, dict[int, int]] = {}
    for broker, report in sorted(facts.own_reports.items()):
        session_ms, slowest_ms = _value(report, SESSION_METRIC), _value(report, SLOWEST_METRIC)
        if session_ms and slowest_ms >= SLOW_SHARE * session_ms:
            is_grave = slowest_ms >= VERY_SLOW_SHARE * session_ms
            slow.setdefault(Severity.grave if is_grave else Severity.warning, {})[broker] = slowest_ms
    for severity, found in slow.items():
        yield Finding(
            NAME,
            severity,
            named("broker", list(found)),
            f"ZooKeeper took up to {max(found.values())} ms for an answer in the last minute",
            "elections, ISRs and starts wait as long; after a third of a session clients leave their server, "
            "and a session that ends takes its broker out",
            "look at memory, network and disk of ZooKeeper's servers; give its transaction log a disk alone",
        )


def _granted(facts: ClusterFacts) -> Iterator[Finding]:
    """Whether servers grant the session time-out that a broker asks for."""
    other: dict[tuple[int, int], list[int]] = {}
    for broker in facts.answering:
        report = facts.own_reports.get(broker.broker_id)
        granted_ms = 0 if report is None else _value(report, SESSION_METRIC)
        asked_ms = int(broker.settings.get(SESSION_TIMEOUT, granted_ms) or granted_ms)
        if granted_ms and granted_ms != asked_ms:
            other.setdefault((asked_ms, granted_ms), []).append(broker.broker_id)
    for (asked_ms, granted_ms), brokers in other.items():
        is_less = granted_ms < asked_ms
        limit = "maxSessionTimeout" if is_less else "minSessionTimeout"
        harm = (
            "a pause that the setting allows for ends the session, and others are elected"
            if is_less
            else "a cut is noticed later than the setting says"
        )
        yield Finding(
            NAME,
            Severity.warning if is_less else Severity.note,
            named("broker", brokers),
            f"{SESSION_TIMEOUT}={asked_ms}, and ZooKeeper grants {granted_ms}",
            harm,
            f"another {limit} or tickTime of ZooKeeper's servers, or {SESSION_TIMEOUT}={granted_ms}",
        )


def _value(report: BrokerReportResponse, name: str) -> int:
    """0 where a broker of an older release does not say it."""
    values = [one.value for metric in report.metrics if metric.name == name for one in metric.series]
    return int(values[0]) if values else 0


ZOOKEEPER: Final = Check(
    NAME,
    (Part.brokers, Part.own_reports),
    "several members are named, an odd number; it answers fast, and grants the session time-outs asked for",
    examine_zookeeper,
)
