"""Whether ZooKeeper survives the loss of a member, and whether sessions survive a pause. PURE."""

from collections.abc import Iterator
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity, named

NAME: Final = "zookeeper"
CONNECT: Final = "zookeeper.connect"
SESSION_TIMEOUT: Final = "zookeeper.session.timeout.ms"
SESSION_MIN_MS: Final = 6_000
SESSION_MAX_MS: Final = 40_000
"""A server's own limit, unless its maxSessionTimeout or tickTime says another: 20 ticks of 2 s."""


def examine_zookeeper(facts: ClusterFacts) -> Iterator[Finding]:
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


ZOOKEEPER: Final = Check(
    NAME,
    (Part.brokers,),
    "several members are named, an odd number, and session time-outs are within their limits",
    examine_zookeeper,
)
