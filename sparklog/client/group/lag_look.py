"""How far each group has read: its committed offsets, the ends of their partitions, and what is between.

Committed offsets carry no time, so one look says nothing about progress; two looks do. Metadata of a commit
name the streaming query that made it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sparklog.client import offsets
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClusterUnavailable
from sparklog.client.group.committed_offsets import CommittedOffset, by_topic, fetch_committed
from sparklog.client.group.group_admin import GroupAdmin, GroupListing
from sparklog.client.offsets import CONSUMER
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.data.list_offsets import LATEST_TIMESTAMP

GROUPS_MAX: Final = 1_000
"""More groups than these are not looked at; the list says so."""
LOOK_TIMEOUT_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """A partition with a committed offset; ``end`` is -1 if its leader did not answer."""

    topic_partition: TopicPartition
    committed: CommittedOffset
    end: int

    @property
    def lag(self) -> int:
        return max(0, self.end - self.committed.offset)


@dataclass(frozen=True, slots=True)
class GroupLag:
    listing: GroupListing
    partitions: tuple[PartitionLag, ...]

    @property
    def lag(self) -> int:
        return sum(one.lag for one in self.partitions)

    def query(self) -> dict[str, Any] | None:
        """The streaming query that committed last, with its run and batch; None if no query did."""
        for one in self.partitions:
            found = query_of(one.committed.metadata)
            if found is not None:
                return found
        return None


@dataclass(frozen=True, slots=True)
class LagLook:
    """All groups at one moment. ``failed``: those whose coordinator did not answer, and why."""

    time_ms: int
    groups: Mapping[str, GroupLag] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    left_out: int = 0


def look_at_groups(cluster: ClusterClient) -> LagLook:
    """All groups that this user may describe. KafkaError, OSError or ClusterUnavailable without a list."""
    admin, deadline = GroupAdmin(cluster), cluster.deadline(LOOK_TIMEOUT_MS)
    listings = admin.list_groups()
    committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}
    failed: dict[str, str] = {}
    for listing in listings[:GROUPS_MAX]:
        if deadline.is_over:
            failed[listing.group_id] = "there was no time left for it"
            continue
        try:
            committed[listing.group_id] = fetch_committed(admin.coordinator(listing.group_id))
        except (OSError, SparklogError) as error:
            failed[listing.group_id] = str(error)
    ends = ends_of(cluster, {one for found in committed.values() for one in found})
    groups = {
        listing.group_id: GroupLag(listing, _lags(committed[listing.group_id], ends))
        for listing in listings
        if listing.group_id in committed
    }
    return LagLook(cluster.clock.wall_ms(), groups, failed, max(0, len(listings) - GROUPS_MAX))


def ends_of(cluster: ClusterClient, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The high watermark of each; -1 where none is known."""
    wanted = sorted(partitions)
    if not wanted:
        return {}
    try:
        seen = cluster.metadata(list(by_topic(wanted)), max_age_ms=1_000)
    except ClusterUnavailable:
        return dict.fromkeys(wanted, -1)
    deadline = cluster.deadline(LOOK_TIMEOUT_MS)
    return offsets.ask_once(cluster, seen, wanted, LATEST_TIMESTAMP, CONSUMER, deadline)


def query_of(metadata: str) -> dict[str, Any] | None:
    """Name, id, run and batch of a streaming query, as a commit's metadata have them; None for any others."""
    if not metadata.startswith("{"):
        return None
    try:
        found = json.loads(metadata)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("id"), str):
        return None
    return {name: found.get(name) for name in ("name", "id", "run", "batch")}


def _lags(
    committed: Mapping[TopicPartition, CommittedOffset], ends: Mapping[TopicPartition, int]
) -> tuple[PartitionLag, ...]:
    return tuple(PartitionLag(one, committed[one], ends.get(one, -1)) for one in sorted(committed))
