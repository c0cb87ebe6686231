"""``sparklog groups describe``: how far a group has read, how much is left, and which member reads what."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparklog.cli.command import DONE, did_you_mean
from sparklog.cli.connect import cluster_words, wants_json
from sparklog.cli.progress import patience
from sparklog.cli.table import render_table
from sparklog.client import offsets
from sparklog.client.admin import DESCRIBE_TIMEOUT_MS
from sparklog.client.cluster import ClusterClient
from sparklog.client.group.committed_offsets import CommittedOffset, by_topic, fetch_committed
from sparklog.client.group.group_admin import DEAD, GroupAdmin, GroupDescription, MemberDescription
from sparklog.client.offsets import CONSUMER
from sparklog.model.cluster_facts import host_port
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.data.list_offsets import LATEST_TIMESTAMP


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOfGroup:
    """A partition with a committed offset, or with an owner. Unknown numbers are None."""

    topic_partition: TopicPartition
    committed: CommittedOffset | None
    high_watermark: int | None
    """The end for readers; None if the leader did not answer, or the topic does not exist any more."""
    owner: MemberDescription | None

    @property
    def lag(self) -> int | None:
        """Records that the group has not read yet; None if either end is unknown."""
        if self.committed is None or self.high_watermark is None:
            return None
        return max(0, self.high_watermark - self.committed.offset)


@dataclass(frozen=True, slots=True)
class _Described:
    group: GroupDescription
    partitions: list[PartitionOfGroup]


def describe(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    described = [_described(cluster, arguments, group_id) for group_id in dict.fromkeys(arguments.groups)]
    if wants_json(arguments):
        print(json.dumps({"groups": [_as_json(one) for one in described]}))
    else:
        print("\n\n".join(_as_text(one) for one in described))
    return DONE


def _described(cluster: ClusterClient, arguments: argparse.Namespace, group_id: str) -> _Described:
    admin = GroupAdmin(cluster)
    with patience(f"asking for group {group_id!r}"):
        group = admin.describe(group_id)
        if group.group_state == DEAD:
            known = [listing.group_id for listing in admin.list_groups()]
            raise SparklogError(no_such_group(group_id, known, cluster_words(arguments)))
        committed = fetch_committed(admin.coordinator(group_id))
        return _Described(group, _partitions(cluster, group, committed))


def no_such_group(group_id: str, known: list[str], cluster: str) -> str:
    """The error text for a group that does not exist."""
    hint = did_you_mean(group_id, known) or f"; `sparklog groups list {cluster}` shows those there are"
    return f"there is no group {group_id!r}{hint if known else ', nor any other'}"


def _partitions(
    cluster: ClusterClient, group: GroupDescription, committed: Mapping[TopicPartition, CommittedOffset]
) -> list[PartitionOfGroup]:
    owners = group.owners()
    topic_partitions = sorted(committed.keys() | owners.keys())
    high_watermarks: Mapping[TopicPartition, int] = {}
    if topic_partitions:
        seen = cluster.metadata(list(by_topic(topic_partitions)), max_age_ms=0)
        deadline = cluster.deadline(DESCRIBE_TIMEOUT_MS)
        high_watermarks = offsets.ask_once(
            cluster, seen, topic_partitions, LATEST_TIMESTAMP, CONSUMER, deadline
        )
    return [
        PartitionOfGroup(
            topic_partition=one,
            committed=committed.get(one),
            high_watermark=None if (end := high_watermarks.get(one, -1)) < 0 else end,
            owner=owners.get(one),
        )
        for one in topic_partitions
    ]


def _as_text(described: _Described) -> str:
    group, partitions = described.group, described.partitions
    assignor = f", assignor {group.protocol_data}" if group.protocol_data else ""
    node = group.coordinator
    where = f"coordinator {node.id} ({host_port(node.host, node.port)})"
    title = f"group {group.group_id}: {group.group_state}{assignor}, {where}"
    return "\n".join([title, _partition_table(partitions), _member_table(group)])


def _partition_table(partitions: list[PartitionOfGroup]) -> str:
    if not partitions:
        return "no committed offsets"
    known = [one.lag for one in partitions if one.lag is not None]
    which = "all partitions" if len(known) == len(partitions) else "the partitions where it is known"
    rows = [
        [
            *one.topic_partition,
            None if one.committed is None else one.committed.offset,
            one.high_watermark,
            one.lag,
            None if one.owner is None else one.owner.member_id,
        ]
        for one in partitions
    ]
    headers = ["TOPIC", "PARTITION", "COMMITTED", "HIGH WATERMARK", "LAG", "MEMBER"]
    return f"{render_table(headers, rows)}\nlag of {which}: {sum(known)}"


def host_of(member: MemberDescription) -> str:
    """The member's address, without the slash that Kafka's protocol has before it."""
    return member.client_host.removeprefix("/")


def _member_table(group: GroupDescription) -> str:
    if not group.members:
        return "no members"
    rows = [
        [
            member.member_id,
            member.group_instance_id,
            member.client_id,
            host_of(member),
            " ".join(
                f"{topic}:{','.join(map(str, numbers))}"
                for topic, numbers in by_topic(member.partitions).items()
            ),
        ]
        for member in sorted(group.members, key=lambda member: member.member_id)
    ]
    return render_table(["MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"], rows, spare=("HOST",))


def _as_json(described: _Described) -> dict[str, Any]:
    group = described.group
    return {
        "group_id": group.group_id,
        "group_state": group.group_state,
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol_data,
        "coordinator": {
            "id": group.coordinator.id,
            "host": group.coordinator.host,
            "port": group.coordinator.port,
        },
        "members": [_member_as_json(member) for member in group.members],
        "offsets": [_partition_as_json(one) for one in described.partitions],
    }


def _member_as_json(member: MemberDescription) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "topics": sorted(member.topics),
        "assignment": [
            {"topic": topic, "partitions": numbers} for topic, numbers in by_topic(member.partitions).items()
        ],
    }


def _partition_as_json(one: PartitionOfGroup) -> dict[str, Any]:
    """Unknown numbers are -1, as in Kafka's protocol; an unknown lag, too."""
    committed = one.committed or CommittedOffset(-1)
    return {
        "topic": one.topic_partition.topic,
        "partition": one.topic_partition.partition,
        "committed_offset": committed.offset,
        "committed_leader_epoch": committed.leader_epoch,
        "metadata": committed.metadata,
        "high_watermark": -1 if one.high_watermark is None else one.high_watermark,
        "lag": -1 if one.lag is None else one.lag,
        "member_id": None if one.owner is None else one.owner.member_id,
    }
