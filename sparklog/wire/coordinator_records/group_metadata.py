"""Kafka's GroupMetadataKey and GroupMetadataValue: one generation of a group, with its assignment.

Keys are written in version 2, values in version 3.
"""

from functools import partial
from typing import Final

from sparklog.core.group.records import NO_TIMESTAMP_MS, GroupKey, GroupValue, MemberValue
from sparklog.wire.coordinator_records.record_layout import (
    FLEXIBLE,
    PLAIN,
    Layout,
    read_int32,
    read_int64,
    write_bytes,
    write_int16,
    write_int32,
    write_int64,
    write_nullable_string,
    write_string,
)
from sparklog.wire.primitives import Cursor, Output

KEY_VERSIONS: Final = range(2, 3)
VALUE_VERSIONS: Final = range(5)

_KEY_VERSION: Final = 2
_VALUE_VERSION: Final = 3
_REBALANCE_TIMEOUT_FROM: Final = 1
_STATE_TIMESTAMP_FROM: Final = 2
_INSTANCE_ID_FROM: Final = 3
_FLEXIBLE_FROM: Final = 4

_MEMBER_BYTES_MIN: Final = 15
"""A flexible member of empty fields: seven bytes of lengths and tags, and two time-outs."""


def write_key(key: GroupKey, output: Output) -> None:
    write_int16(_KEY_VERSION, output)
    write_string(key.group_id, output)


def read_key(cursor: Cursor) -> GroupKey:
    return GroupKey(PLAIN.string(cursor))


def write_value(value: GroupValue, output: Output) -> None:
    write_int16(_VALUE_VERSION, output)
    write_string(value.protocol_type, output)
    write_int32(value.generation_id, output)
    write_nullable_string(value.protocol, output)
    write_nullable_string(value.leader, output)
    write_int64(value.state_timestamp_ms, output)
    write_int32(len(value.members), output)
    for member in value.members:
        _write_member(member, output)


def read_value(cursor: Cursor, version: int) -> GroupValue:
    layout = FLEXIBLE if version >= _FLEXIBLE_FROM else PLAIN
    protocol_type, generation_id = layout.string(cursor), read_int32(cursor)
    protocol, leader = layout.nullable_string(cursor), layout.nullable_string(cursor)
    state_timestamp_ms = read_int64(cursor) if version >= _STATE_TIMESTAMP_FROM else NO_TIMESTAMP_MS
    read_members = layout.array(partial(_read_member, layout, version), _MEMBER_BYTES_MIN)
    members = tuple(read_members(cursor))
    layout.end(cursor)
    return GroupValue(protocol_type, generation_id, protocol, leader, state_timestamp_ms, members)


def _write_member(member: MemberValue, output: Output) -> None:
    write_string(member.member_id, output)
    write_nullable_string(member.group_instance_id, output)
    write_string(member.client_id, output)
    write_string(member.client_host, output)
    write_int32(member.rebalance_timeout_ms, output)
    write_int32(member.session_timeout_ms, output)
    write_bytes(member.subscription, output)
    write_bytes(member.assignment, output)


def _read_member(layout: Layout, version: int, cursor: Cursor) -> MemberValue:
    """Version 0 has no rebalance time-out: the session time-out was both."""
    member_id = layout.string(cursor)
    instance_id = layout.nullable_string(cursor) if version >= _INSTANCE_ID_FROM else None
    client_id, client_host = layout.string(cursor), layout.string(cursor)
    rebalance_timeout_ms = read_int32(cursor) if version >= _REBALANCE_TIMEOUT_FROM else None
    session_timeout_ms = read_int32(cursor)
    subscription, assignment = bytes(layout.bytes_(cursor)), bytes(layout.bytes_(cursor))
    layout.end(cursor)
    return MemberValue(
        member_id,
        instance_id,
        client_id,
        client_host,
        session_timeout_ms if rebalance_timeout_ms is None else rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )
