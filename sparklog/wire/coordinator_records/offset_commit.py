"""Kafka's OffsetCommitKey and OffsetCommitValue: one committed offset.

Keys are written in version 1, values in version 3, or in version 1 if they have a time of expiry, for which
no other version has room.
"""

from typing import Final

from sparklog.core.group.records import NO_TIMESTAMP_MS, OffsetKey, OffsetValue
from sparklog.model.ids import NO_EPOCH, TopicPartition
from sparklog.wire.coordinator_records.record_layout import (
    FLEXIBLE,
    PLAIN,
    read_int32,
    read_int64,
    write_int16,
    write_int32,
    write_int64,
    write_string,
)
from sparklog.wire.primitives import Cursor, Output

KEY_VERSIONS: Final = range(2)
VALUE_VERSIONS: Final = range(5)

_KEY_VERSION: Final = 1
_VALUE_VERSION: Final = 3
_EXPIRING_VERSION: Final = 1
_LEADER_EPOCH_FROM: Final = 3
_FLEXIBLE_FROM: Final = 4


def write_key(key: OffsetKey, output: Output) -> None:
    write_int16(_KEY_VERSION, output)
    write_string(key.group_id, output)
    write_string(key.topic_partition.topic, output)
    write_int32(key.topic_partition.partition, output)


def read_key(cursor: Cursor) -> OffsetKey:
    group_id, topic = PLAIN.string(cursor), PLAIN.string(cursor)
    return OffsetKey(group_id, TopicPartition(topic, read_int32(cursor)))


def write_value(value: OffsetValue, output: Output) -> None:
    expires = value.expire_timestamp_ms != NO_TIMESTAMP_MS
    write_int16(_EXPIRING_VERSION if expires else _VALUE_VERSION, output)
    write_int64(value.offset, output)
    if not expires:
        write_int32(value.leader_epoch, output)
    write_string(value.metadata, output)
    write_int64(value.commit_timestamp_ms, output)
    if expires:
        write_int64(value.expire_timestamp_ms, output)


def read_value(cursor: Cursor, version: int) -> OffsetValue:
    layout = FLEXIBLE if version >= _FLEXIBLE_FROM else PLAIN
    offset = read_int64(cursor)
    leader_epoch = read_int32(cursor) if version >= _LEADER_EPOCH_FROM else NO_EPOCH
    metadata, commit_timestamp_ms = layout.string(cursor), read_int64(cursor)
    expires = version == _EXPIRING_VERSION
    expire_timestamp_ms = read_int64(cursor) if expires else NO_TIMESTAMP_MS
    layout.end(cursor)
    return OffsetValue(offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms)
