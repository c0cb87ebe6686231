"""Partitions without a leader, with too few in-sync replicas for acks=all, or with not all. PURE.

While no broker answers, the controller's counts are all that is known.
"""

from collections.abc import Iterator
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity, named
from sparklog.model.ids import TopicPartition

NAME: Final = "isr"


def examine_isrs(facts: ClusterFacts) -> Iterator[Finding]:
    if Part.topics in facts.unknown:
        yield from _by_counts(facts)
        return
    live = {node.id for node in facts.nodes}
    leaderless: list[TopicPartition] = []
    refusing: list[TopicPartition] = []
    missing: dict[int, list[TopicPartition]] = {}
    for topic in facts.topics:
        for number, partition in sorted(topic.metadata.partitions.items()):
            place = TopicPartition(topic.name, number)
            if partition.leader not in live:
                leaderless.append(place)
            elif len(partition.isr) < min(topic.min_in_sync, len(partition.replicas)):
                refusing.append(place)
            for broker in set(partition.replicas) - set(partition.isr):
                missing.setdefault(broker, []).append(place)
    if leaderless:
        yield _leaderless(named("partition", leaderless), facts.options, leaderless[0].topic)
    if refusing:
        yield Finding(
            NAME,
            Severity.grave,
            named("partition", refusing),
            "fewer replicas are in sync than min.insync.replicas",
            "writes with acks=all are refused, and so are commits of groups where it is an internal topic",
            f"bring the missing replicas back: sparklog topics describe {refusing[0].topic} {facts.options}",
        )
    for broker, places in sorted(missing.items()):
        yield _missing(broker, places, facts)


def _missing(broker: int, places: list[TopicPartition], facts: ClusterFacts) -> Finding:
    moving = facts.report.moving if facts.report is not None else 0
    moves = f"; {moving} partitions move, which is no fault" if moving else ""
    return Finding(
        NAME,
        Severity.warning,
        f"broker {broker}",
        f"is not in sync in {len(places)} of its partitions ({named('partition', places)}){moves}",
        "each has a copy less; with one failure more, writes may stop",
        f"if it is away, start it: sparklog brokers list {facts.options}; if it serves, its disk or network "
        "is too slow, or replica.lag.time.max.ms too short",
    )


def _by_counts(facts: ClusterFacts) -> Iterator[Finding]:
    report = facts.report
    if report is None:
        yield Finding(
            NAME,
            Severity.note,
            "cluster",
            f"not examined: {facts.unknown[Part.topics]}",
            "partitions without a leader stay unknown",
            f"sparklog status {facts.options}",
        )
        return
    if report.leaderless:
        yield _leaderless(f"{report.leaderless} of {report.partitions} partitions", facts.options, "NAME")
    if report.under_replicated:
        yield Finding(
            NAME,
            Severity.warning,
            f"{report.under_replicated} of {report.partitions} partitions",
            "not all replicas are in sync",
            "each has fewer copies than it should",
            f"bring brokers back: sparklog brokers list {facts.options}",
        )


def _leaderless(subject: str, options: str, topic: str) -> Finding:
    return Finding(
        NAME,
        Severity.grave,
        subject,
        "no live broker leads",
        "nothing of them is read or written",
        f"start a broker that was in sync last: sparklog topics describe {topic} {options}; if none returns: "
        f"sparklog elect-leaders --unclean --topic {topic} {options}, which may lose records",
    )


ISR: Final = Check(NAME, (), "every partition has a leader, and all its replicas are in sync", examine_isrs)
