"""Topics that are less safe than they look: too few copies, too few that count, or all in one place. PURE.

One finding stands for all topics with the same fault, so that there are few, however many topics there are.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part, SeenTopic
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity, named
from sparklog.client.metadata.cluster_metadata import PartitionMetadata
from sparklog.model.ids import BrokerId

NAME: Final = "topics"
UNCLEAN: Final = "unclean.leader.election.enable"


def examine_topics(facts: ClusterFacts) -> Iterator[Finding]:
    known = max(len(facts.nodes), 0 if facts.report is None else len(facts.report.brokers))
    yield from _one_copy(facts, only_one_broker=known < 2)
    yield from _counts_that_contradict(facts)
    yield from _unclean(facts)
    yield from _in_one_place(facts, "host", {node.id: node.host for node in facts.nodes})
    yield from _in_one_place(facts, "rack", {node.id: node.rack or "" for node in facts.nodes})


def _one_copy(facts: ClusterFacts, *, only_one_broker: bool) -> Iterator[Finding]:
    found = _with(facts, lambda topic: topic.metadata.replication_factor == 1)
    if not found:
        return
    yield Finding(
        NAME,
        Severity.note if only_one_broker else Severity.warning,
        named("topic", found),
        "one replica of each partition" + (", as the cluster has one broker" if only_one_broker else ""),
        "while its broker is away nothing is read or written, and its disk is the only copy",
        "on more brokers: write more replicas into a plan (sparklog reassign plan), then: sparklog reassign "
        f"execute --plan FILE {facts.options}",
    )


def _counts_that_contradict(facts: ClusterFacts) -> Iterator[Finding]:
    def factor(topic: SeenTopic) -> int:
        return topic.metadata.replication_factor

    found = _with(facts, lambda topic: factor(topic) > 1 and topic.min_in_sync == 1)
    if found:
        yield Finding(
            NAME,
            Severity.warning,
            named("topic", found),
            "min.insync.replicas=1 with several replicas",
            "acks=all is answered while one replica alone has the record; if that disk dies, it is lost",
            _set(facts, found, "min.insync.replicas=2"),
        )
    found = _with(facts, lambda topic: 1 < factor(topic) == topic.min_in_sync)
    if found:
        yield Finding(
            NAME,
            Severity.warning,
            named("topic", found),
            "min.insync.replicas is as large as the replication factor",
            "writes with acks=all stop while any one broker is away, also at each restart",
            "one replica more, or " + _set(facts, found, "min.insync.replicas=ONE-LESS"),
        )
    found = _with(facts, lambda topic: topic.min_in_sync > factor(topic))
    if found:
        yield Finding(
            NAME,
            Severity.grave,
            named("topic", found),
            "min.insync.replicas is larger than the replication factor",
            "writes with acks=all are never accepted",
            _set(facts, found, "min.insync.replicas=THE-FACTOR-LESS-ONE"),
        )


def _unclean(facts: ClusterFacts) -> Iterator[Finding]:
    found = _with(facts, lambda topic: topic.settings.get(UNCLEAN) == "true")
    if found:
        yield Finding(
            NAME,
            Severity.warning,
            named("topic", found),
            f"{UNCLEAN}=true",
            "a replica that lacks acknowledged records is elected if those in sync are away",
            _set(facts, found, f"{UNCLEAN}=false"),
        )


def _in_one_place(facts: ClusterFacts, noun: str, place_of: Mapping[BrokerId, str]) -> Iterator[Finding]:
    """Partitions with several replicas, all in one place, although brokers are in several."""
    if len(set(place_of.values())) < 2 or "" in place_of.values():
        return

    def is_in_one(partition: PartitionMetadata) -> bool:
        places = {place_of.get(BrokerId(broker), f"broker {broker}") for broker in partition.replicas}
        return len(partition.replicas) > 1 and len(places) == 1

    found = _with(facts, lambda topic: any(map(is_in_one, topic.metadata.partitions.values())))
    if found:
        yield Finding(
            NAME,
            Severity.warning,
            named("topic", found),
            f"partitions with all their replicas in one {noun}, of {len(set(place_of.values()))}",
            f"when that {noun} is lost, all copies are",
            f"sparklog reassign plan --topics {found[0]} {facts.options}",
        )


def _with(facts: ClusterFacts, is_so: Callable[[SeenTopic], bool]) -> list[str]:
    return [topic.name for topic in facts.topics if topic.metadata.partitions and is_so(topic)]


def _set(facts: ClusterFacts, topics: list[str], setting: str) -> str:
    return f"sparklog topics alter {topics[0]} --config {setting} {facts.options}"


TOPICS: Final = Check(
    NAME,
    (Part.topics,),
    "every topic has several replicas, enough of which must have what acks=all acknowledges",
    examine_topics,
)
