"""Places become offsets: one question per kind of place to each leader."""

from collections.abc import Collection, Mapping

from pyspark_sparklog.bounds import EARLIEST, LATEST, AtOffset, AtTime, Place
from sparklog.client.admin import Admin
from sparklog.client.isolation import IsolationLevel
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition


def resolve(
    admin: Admin, places: Mapping[TopicPartition, Place], isolation_level: IsolationLevel
) -> dict[TopicPartition, int]:
    """The offset of each place, now; SparklogError for a timestamp that no record is as late as."""
    offsets = {tp: place.offset for tp, place in places.items() if isinstance(place, AtOffset)}
    offsets.update(_at_times(admin, places, isolation_level))
    earliest = [tp for tp, offset in offsets.items() if offset == EARLIEST.offset]
    latest = [tp for tp, offset in offsets.items() if offset == LATEST.offset]
    offsets.update(earliest_offsets(admin, earliest))
    offsets.update(latest_offsets(admin, latest, isolation_level))
    return offsets


def earliest_offsets(admin: Admin, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    return admin.earliest(tps) if tps else {}


def latest_offsets(
    admin: Admin, tps: Collection[TopicPartition], isolation_level: IsolationLevel
) -> dict[TopicPartition, int]:
    """Ends up to which a reader of this isolation level may read."""
    return admin.latest(tps, isolation_level=isolation_level) if tps else {}


def _at_times(
    admin: Admin, places: Mapping[TopicPartition, Place], isolation_level: IsolationLevel
) -> dict[TopicPartition, int]:
    """Offsets of the places in time; ``LATEST`` for one later than every record, where that is allowed."""
    times = {tp: place for tp, place in places.items() if isinstance(place, AtTime)}
    if not times:
        return {}
    found = admin.offsets_for_times(
        {tp: place.timestamp_ms for tp, place in times.items()}, isolation_level=isolation_level
    )
    offsets: dict[TopicPartition, int] = {}
    for tp, place in times.items():
        record = found[tp]
        if record is None and not place.or_latest:
            raise SparklogError(
                f"no offset matched: {tp} has no record at or after timestamp {place.timestamp_ms}; give an "
                "earlier one, or set option startingOffsetsByTimestampStrategy to latest"
            )
        offsets[tp] = LATEST.offset if record is None else record.offset
    return offsets
