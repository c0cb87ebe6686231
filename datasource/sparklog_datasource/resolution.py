"""Places become offsets: one question per kind of place to each leader."""

from collections.abc import Collection, Mapping

from sparklog.client.admin import Admin
from sparklog.client.isolation import IsolationLevel
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog_datasource.bounds import EARLIEST, LATEST, AtOffset, AtTime, Place


def resolve(
    admin: Admin, places: Mapping[TopicPartition, Place], isolation_level: IsolationLevel
) -> dict[TopicPartition, int]:
    """The offset of each place, now; SparklogError for a timestamp that no record is as late as."""
    offsets = {
        topic_partition: place.offset
        for topic_partition, place in places.items()
        if isinstance(place, AtOffset)
    }
    offsets.update(_at_times(admin, places, isolation_level))
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
    """Ends up to which a reader of this isolation level may read."""
    return admin.latest(topic_partitions, isolation_level=isolation_level) if topic_partitions else {}


def _at_times(
    admin: Admin, places: Mapping[TopicPartition, Place], isolation_level: IsolationLevel
) -> dict[TopicPartition, int]:
    """Offsets of the places in time; ``LATEST`` for one later than every record, where that is allowed."""
    times = {topic_partition: place for topic_partition, place in places.items() if isinstance(place, AtTime)}
    if not times:
        return {}
    found = admin.offsets_for_times(
        {topic_partition: place.timestamp_ms for topic_partition, place in times.items()},
        isolation_level=isolation_level,
    )
    offsets: dict[TopicPartition, int] = {}
    for topic_partition, place in times.items():
        record = found[topic_partition]
        if record is None and not place.or_latest:
            raise SparklogError(
                f"no offset matched: {topic_partition} has no record at or after timestamp "
                f"{place.timestamp_ms}; "
                "give an earlier one, or set option startingOffsetsByTimestampStrategy to latest"
            )
        offsets[topic_partition] = LATEST.offset if record is None else record.offset
    return offsets
