"""``sparklog groups reset-offsets``: choose where a group goes on, look at it, and commit it."""

import argparse
import json
from collections.abc import Mapping, Sequence

from sparklog.cli.command import DONE, FAILED
from sparklog.cli.connect import wants_json
from sparklog.cli.coordinators.groups.group_description import host_of
from sparklog.cli.coordinators.groups.offsets_file import plan_text, read_plan
from sparklog.cli.coordinators.groups.partitions import named_partitions
from sparklog.cli.coordinators.groups.reset_ways import (
    FromPlan,
    PartitionFacts,
    Reset,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
    Way,
    reset_one,
)
from sparklog.cli.progress import patience, say
from sparklog.cli.table import render_table
from sparklog.client import offsets
from sparklog.client.cluster import ClusterClient
from sparklog.client.coordinator import Coordinator
from sparklog.client.group.committed_offsets import commit_offsets, fetch_committed
from sparklog.client.group.group_admin import GroupAdmin
from sparklog.client.isolation import IsolationLevel
from sparklog.model.errors import ErrorCode, SparklogError
from sparklog.model.ids import TopicPartition


def reset_offsets(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    group_id: str = arguments.group
    coordinator = GroupAdmin(cluster).coordinator(group_id)
    way = _way(cluster, arguments)
    with patience(f"asking for the offsets of group {group_id!r}"):
        _refuse_members(cluster, group_id)
        facts = _facts(cluster, coordinator, arguments, way)
    resets = {one.topic_partition: reset_one(way, one) for one in facts}
    for reset in resets.values():
        if reset.note:
            say(f"warning: {reset.note}")
    refused: Mapping[TopicPartition, ErrorCode] = {}
    if arguments.execute:
        with patience(f"committing the offsets of group {group_id!r}"):
            refused = commit_offsets(coordinator, {one: reset.offset for one, reset in resets.items()})
    _show(arguments, facts, resets)
    for topic_partition, code in refused.items():
        say(f"the offset of {topic_partition} was not changed: {_reason(code, group_id)}")
    if not arguments.execute and not arguments.export:
        say("nothing was changed; --execute commits these offsets")
    return FAILED if refused else DONE


def _way(cluster: ClusterClient, arguments: argparse.Namespace) -> Way:
    """The way that the options name."""
    if arguments.to_earliest:
        return ToEarliest()
    if arguments.to_latest:
        return ToLatest()
    if arguments.to_current:
        return ToCurrent()
    if arguments.to_offset is not None:
        return ToOffset(arguments.to_offset)
    if arguments.shift_by is not None:
        return ShiftBy(arguments.shift_by)
    if arguments.to_datetime is not None:
        return ToTime(arguments.to_datetime)
    if arguments.by_duration is not None:
        return ToTime(cluster.clock.wall_ms() - arguments.by_duration)
    return FromPlan(read_plan(arguments.from_file, arguments.group))


def _refuse_members(cluster: ClusterClient, group_id: str) -> None:
    """SparklogError if the group has members: they would overwrite the offsets, and do not look at them."""
    group = GroupAdmin(cluster).describe(group_id)
    if group.members:
        count = "1 member" if len(group.members) == 1 else f"{len(group.members)} members"
        hosts = ", ".join(sorted({f"{member.client_id} at {host_of(member)}" for member in group.members}))
        raise SparklogError(
            f"group {group_id!r} has {count} ({hosts}) and is {group.group_state}; "
            "stop its consumers, and reset it then"
        )


def _facts(
    cluster: ClusterClient, coordinator: Coordinator, arguments: argparse.Namespace, way: Way
) -> list[PartitionFacts]:
    """The partitions to reset, in order, with what the way needs to know of them."""
    committed = {one: found.offset for one, found in fetch_committed(coordinator).items()}
    topic_partitions = _wanted(cluster, arguments, way, sorted(committed))
    log_starts = offsets.earliest(cluster, topic_partitions)
    log_ends = offsets.latest(cluster, topic_partitions, IsolationLevel.READ_UNCOMMITTED)
    at_times: Mapping[TopicPartition, offsets.OffsetAndTimestamp | None] = {}
    if isinstance(way, ToTime):
        times = dict.fromkeys(topic_partitions, way.timestamp_ms)
        at_times = offsets.for_times(cluster, times, IsolationLevel.READ_UNCOMMITTED)
    return [
        PartitionFacts(
            topic_partition=one,
            log_start=log_starts[one],
            log_end=log_ends[one],
            committed=committed.get(one),
            at_time=None if (found := at_times.get(one)) is None else found.offset,
        )
        for one in topic_partitions
    ]


def _wanted(
    cluster: ClusterClient, arguments: argparse.Namespace, way: Way, committed: Sequence[TopicPartition]
) -> list[TopicPartition]:
    """The partitions that the options name, of a plan those that it has."""
    if arguments.topic:
        wanted = named_partitions(cluster, arguments, arguments.topic)
    elif isinstance(way, FromPlan):
        wanted = sorted(way.offsets)
        cluster_has = _existing(cluster, wanted)
        missing = [one for one in wanted if one not in cluster_has]
        if missing:
            raise SparklogError(f"the plan names {missing[0]}, but there is no such partition")
    else:
        wanted = list(committed)
    if isinstance(way, FromPlan):
        wanted = [one for one in wanted if one in way.offsets]
    if not wanted:
        raise SparklogError(
            "the plan has none of these partitions"
            if isinstance(way, FromPlan)
            else f"group {arguments.group!r} has no committed offsets; name the topics by --topic"
        )
    return wanted


def _existing(cluster: ClusterClient, topic_partitions: Sequence[TopicPartition]) -> set[TopicPartition]:
    topics = sorted({one.topic for one in topic_partitions})
    seen = cluster.metadata(topics, max_age_ms=0).topics
    return {one for name in topics if name in seen for one in seen[name].topic_partitions()}


def _show(
    arguments: argparse.Namespace, facts: Sequence[PartitionFacts], resets: Mapping[TopicPartition, Reset]
) -> None:
    if arguments.export:
        print(plan_text({one: reset.offset for one, reset in resets.items()}), end="")
        return
    if wants_json(arguments):
        listed = [
            {
                "topic": one.topic_partition.topic,
                "partition": one.topic_partition.partition,
                "committed_offset": -1 if one.committed is None else one.committed,
                "new_offset": resets[one.topic_partition].offset,
            }
            for one in facts
        ]
        print(json.dumps({"group_id": arguments.group, "executed": arguments.execute, "offsets": listed}))
        return
    rows = [
        [
            one.topic_partition.topic,
            one.topic_partition.partition,
            one.committed,
            resets[one.topic_partition].offset,
        ]
        for one in facts
    ]
    print(render_table(["TOPIC", "PARTITION", "COMMITTED", "NEW OFFSET"], rows))


def _reason(code: ErrorCode, group_id: str) -> str:
    if code is ErrorCode.unknown_member_id:
        return f"group {group_id!r} has members now; stop its consumers first"
    return code.name.upper()
