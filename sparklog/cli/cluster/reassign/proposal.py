"""``sparklog reassign plan``: propose new replicas for partitions, beside their current ones."""

import argparse
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from sparklog.cli.cluster.reassign.plan_file import VERSION, Plan, write_plan
from sparklog.cli.command import DONE, UsageError
from sparklog.cli.connect import cluster_words, wants_json
from sparklog.cli.progress import patience, say
from sparklog.cli.table import render_table
from sparklog.cli.topic_names import topic_wanted
from sparklog.client.admin import UNKNOWN_TOPIC_WAIT_MS
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import ClusterMetadata
from sparklog.core.placement.even_placement import plan_placement
from sparklog.model.errors import SparklogError
from sparklog.model.ids import BrokerId, TopicPartition


def plan(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    with patience("asking where partitions are"):
        current = current_placement(cluster, arguments, arguments.topics)
        seen = cluster.latest_metadata
    if not current:
        raise SparklogError("there is no topic, so there is nothing to plan")
    brokers = _brokers(seen, arguments.brokers)
    planned = plan_placement(current, brokers, replication_factor=arguments.replication_factor)
    output: Path | None = arguments.output
    if output is not None:
        write_plan(output, planned)
    if wants_json(arguments):
        print(json.dumps(_as_json(current, planned)))
    else:
        _show(current, planned)
        _tell_what_next(arguments, current, planned)
    return DONE


def current_placement(
    cluster: ClusterClient, arguments: argparse.Namespace, topics: Sequence[str] | None
) -> Plan:
    """The replicas of these topics' partitions, or of all; for moving partitions, those after the move."""
    for name in topics or ():
        with topic_wanted(cluster, arguments, name):
            cluster.topic(name, timeout_ms=UNKNOWN_TOPIC_WAIT_MS)
    seen = cluster.metadata(topics, max_age_ms=0)
    current = placement_of(seen, topics)
    for partition, move in ClusterChanges(cluster).ongoing_moves().items():
        if partition in current:
            current[partition] = move.target
    return current


def placement_of(seen: ClusterMetadata, topics: Sequence[str] | None) -> Plan:
    found = seen.topics.values() if topics is None else [seen.topics[name] for name in topics]
    return {
        TopicPartition(topic.name, number): state.replicas
        for topic in found
        if topics is not None or not topic.is_internal
        for number, state in topic.partitions.items()
    }


def _brokers(seen: ClusterMetadata, wanted: Sequence[int] | None) -> dict[int, str | None]:
    """The brokers that may get replicas, with their racks."""
    live = sorted(seen.brokers)
    for broker in wanted or ():
        if broker not in live:
            raise UsageError(f"--brokers {broker}: no such broker is alive; alive are {live}")
    brokers: dict[int, str | None] = {one: seen.brokers[BrokerId(one)].rack for one in wanted or live}
    nameless = [one for one, rack in brokers.items() if rack is None]
    if nameless and len(nameless) < len(brokers):
        say(f"warning: brokers {nameless} name no rack, so the plan looks at no racks at all")
    return brokers


def _show(current: Plan, planned: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    rows = []
    for partition, replicas in sorted(planned.items()):
        moved = sorted(set(replicas) - set(current[partition]))
        proposed = replicas if replicas != current[partition] else "as it is"
        rows.append([partition.topic, partition.partition, current[partition], proposed, moved])
    print(render_table(["TOPIC", "PARTITION", "CURRENT", "PROPOSED", "NEW REPLICAS"], rows))
    print()
    print(_summary(current, planned))


def _summary(current: Plan, planned: Mapping[TopicPartition, tuple[int, ...]]) -> str:
    changed = sum(planned[one] != current[one] for one in planned)
    copied = sum(len(set(planned[one]) - set(current[one])) for one in planned)
    leaders = sum(planned[one][0] != current[one][0] for one in planned)
    return (
        f"{changed} of {len(planned)} partitions change: {copied} replicas are copied to another broker, "
        f"{leaders} preferred leaders change"
    )


def _tell_what_next(
    arguments: argparse.Namespace, current: Plan, planned: Mapping[TopicPartition, tuple[int, ...]]
) -> None:
    if arguments.output is not None:
        file = shlex.quote(str(arguments.output))
        print(f"the plan is in {file}; carry it out with:")
        print(f"  sparklog reassign execute --plan {file} {cluster_words(arguments)}")
    elif planned != current:
        say("-o FILE writes the plan, for `sparklog reassign execute --plan FILE`")


def _as_json(current: Plan, planned: Mapping[TopicPartition, tuple[int, ...]]) -> dict[str, object]:
    """A plan that can be executed, beside the current replicas."""
    partitions = [
        {
            "topic": one.topic,
            "partition": one.partition,
            "replicas": list(replicas),
            "current_replicas": list(current[one]),
            "adding_replicas": sorted(set(replicas) - set(current[one])),
            "removing_replicas": sorted(set(current[one]) - set(replicas)),
        }
        for one, replicas in sorted(planned.items())
    ]
    return {"version": VERSION, "partitions": partitions}
