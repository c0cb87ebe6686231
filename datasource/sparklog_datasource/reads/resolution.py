"""Bounds become offsets: one question per kind of bound to each leader."""

from collections.abc import Collection, Mapping

from sparklog.client.admin import Admin
from sparklog.client.isolation import IsolationLevel
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog_datasource.reads.bounds import EARLIEST, LATEST, AtOffset, AtTime, Bound


def resolve(
    admin: Admin, bounds: Mapping[TopicPartition, Bound], isolation_level: IsolationLevel
) -> dict[TopicPartition, int]:
    """The offset of each bound, now; SparklogError for a timestamp after every record."""
    offsets = {
        topic_partition: bound.offset
        for topic_partition, bound in bounds.items()
        if isinstance(bound, AtOffset)
    }
    offsets.update(_at_times(admin, bounds, isolation_level))
    earliest = [topic_partition for topic_partition, offset in offsets.items() if offset == EARLIEST.offset]
    latest = [topic_partition for topic_partition, offset in offsets.items() if offset == LATEST.offset]
    offsets.update(earliest_offsets(admin, earliest))
    offsets.update(latest_offsets(admin, latest, isolation_level))
    return offsets


def earliest_offsets(admin: Admin, topic_partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    return admin.earliest(topic_partitions) if topic_partitions else {}


def latest_offsets(
    admin: Admin, topic_partitions: Collection[TopicPartition], isolation_level: IsolationLevel
) -> dict[TopicPartition, int]:
    """The ends for readers of this isolation level."""
    return admin.latest(topic_partitions, isolation_level=isolation_level) if topic_partitions else {}


def _at_times(
    admin: Admin, bounds: Mapping[TopicPartition, Bound], isolation_level: IsolationLevel
) -> dict[TopicPartition, int]:
    """Offsets of the bounds in time; ``LATEST`` for one later than every record, where that is allowed."""
    times = {topic_partition: bound for topic_partition, bound in bounds.items() if isinstance(bound, AtTime)}
    if not times:
        return {}
    found = admin.offsets_for_times(
        {topic_partition: bound.timestamp_ms for topic_partition, bound in times.items()},
        isolation_level=isolation_level,
    )
    offsets: dict[TopicPartition, int] = {}
    for topic_partition, bound in times.items():
        record = found[topic_partition]
        if record is None and not bound.or_latest:
            raise SparklogError(
                f"no offset matched: {topic_partition} has no record at or after timestamp "
                f"{bound.timestamp_ms}; "
                "give an earlier one, or set option startingOffsetsByTimestampStrategy to latest"
            )
        offsets[topic_partition] = LATEST.offset if record is None else record.offset
    return offsets
