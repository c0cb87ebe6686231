"""Expiry of committed offsets (KIP-211): ``offsets.retention.minutes`` after nobody reads them any more.

The age of an offset counts

- in an empty group, from the time at which the group became empty;
- in a stable group of consumers, for topics to which no member is subscribed: from the commit;
- in a group that never had members, from the commit.

A commit that named its own retention time (OffsetCommit 2 to 4) expires when that is over. An offset with a
commit on its way, or that an open transaction may replace, does not expire. An empty group without offsets is
removed.
"""

from sparklog.core.group.group import Group
from sparklog.core.group.records import NO_TIMESTAMP_MS, OffsetValue
from sparklog.core.group.removal import known_offsets, remove_offsets
from sparklog.core.group.states import GroupState
from sparklog.core.group.turn import Turn
from sparklog.model.ids import TopicPartition


def expire(group: Group, turn: Turn) -> None:
    """Remove what has expired. While a write holds the group, nothing: the next check comes."""
    if group.holds:
        return
    expired = _expired_offsets(group, turn)
    is_unstable = bool(turn.state.applied.unstable_of(group.group_id))
    is_unused = group.state is GroupState.EMPTY and not is_unstable and not known_offsets(group, turn)
    if expired or (is_unused and not group.pending_members):
        turn.note(group, f"{len(expired)} offsets have expired")
        turn.state.counters.offsets_expired += len(expired)
        remove_offsets(group, expired, turn)


def _expired_offsets(group: Group, turn: Turn) -> list[TopicPartition]:
    committed = turn.state.applied.offsets_of(group.group_id)
    unstable = turn.state.applied.unstable_of(group.group_id)
    return [
        topic_partition
        for topic_partition, value in committed.items()
        if topic_partition not in group.commits_in_flight
        and topic_partition not in unstable
        and _is_expired(group, topic_partition, value, turn)
    ]


def _is_expired(group: Group, topic_partition: TopicPartition, value: OffsetValue, turn: Turn) -> bool:
    since_ms: int
    if group.protocol_type is None:
        since_ms = value.commit_timestamp_ms
    elif group.state is GroupState.EMPTY:
        is_known = group.state_timestamp_ms != NO_TIMESTAMP_MS
        since_ms = group.state_timestamp_ms if is_known else value.commit_timestamp_ms
    elif group.state is GroupState.STABLE and group.is_consumer_group:
        if group.is_subscribed_to(topic_partition.topic):
            return False
        since_ms = value.commit_timestamp_ms
    else:
        return False
    if value.expire_timestamp_ms != NO_TIMESTAMP_MS:
        return turn.now.wall_ms >= value.expire_timestamp_ms
    return turn.now.wall_ms - since_ms >= turn.settings.offsets_retention_ms
