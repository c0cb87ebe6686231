"""The records of atomic writes in ``__transaction_state``: a head for each app, and the members of its write.

Their keys have versions far above Kafka's, whose software passes them over. Everything is in the flexible
layout, and ends with tagged fields, so that a later release can add some.
``docs/format/write-state.md`` has the layout.
"""

from dataclasses import replace
from typing import Any, Final

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.write_coordinator.records import Head, HeadKey, Member, MemberKey
from sparklog.core.write_coordinator.states import AppState
from sparklog.model.ids import NO_EPOCH, LeaderEpoch
from sparklog.model.parts import read_parts
from sparklog.model.write_ids import MEMBER_NUMBERS
from sparklog.model.write_outcomes import MemberState
from sparklog.wire.coordinator_records.record_codec import EncodedRecord
from sparklog.wire.coordinator_records.record_layout import (
    FLEXIBLE,
    read_int32,
    read_int64,
    write_int16,
    write_int32,
    write_int64,
)
from sparklog.wire.primitives import (
    Cursor,
    Output,
    Writer,
    append_compact_length,
    append_uvarint,
    array_writer,
    number_reader,
    number_writer,
    numbers_reader,
    numbers_writer,
    read_compact_length,
    read_uuid,
    read_uvarint,
    string_writer,
    write_uuid,
)

HEAD_KEY_VERSION: Final = 10_000
MEMBER_KEY_VERSION: Final = 10_001
KEY_VERSIONS: Final = frozenset({HEAD_KEY_VERSION, MEMBER_KEY_VERSION})
VALUE_VERSION: Final = 0
OPENED_IN_TAG: Final = 0
OWNER_TAG: Final = 1
"""Tags of heads."""

_INT32_BYTES: Final = 4
_RUN_BYTES_MIN: Final = 1
_TOPIC_BYTES_MIN: Final = 19

_read_int8: Final = number_reader("b")
_write_int8: Final = number_writer("b")
_write_string: Final = string_writer(append_compact_length, nullable=False)
_read_numbers: Final = numbers_reader(read_compact_length, "i", nullable=False)
_write_numbers: Final = numbers_writer(append_compact_length, "i", nullable=False)
_write_runs: Final = array_writer(append_compact_length, _write_string, nullable=False)
_read_runs: Final = FLEXIBLE.array(FLEXIBLE.string, _RUN_BYTES_MIN)


def encode(record: StateRecord) -> EncodedRecord:
    """Raises WireError if a string is longer than its format has room for."""
    if isinstance(record.key, HeadKey):
        write_key: Writer = _write_head_key
        write_value: Writer = _write_head
    else:
        write_key, write_value = _write_member_key, _write_member
    value = None if record.value is None else _written(write_value, record.value)
    return EncodedRecord(_written(write_key, record.key), value)


def read_key(cursor: Cursor, version: int) -> HeadKey | MemberKey:
    """Raises ValueError for a number that no member has, and all that a reader raises over damage."""
    app = FLEXIBLE.string(cursor)
    if version == HEAD_KEY_VERSION:
        FLEXIBLE.end(cursor)
        return HeadKey(app)
    write_number, member_number = read_int64(cursor), read_int32(cursor)
    FLEXIBLE.end(cursor)
    _check(0 <= member_number < MEMBER_NUMBERS and write_number >= 0, write_number, member_number)
    return MemberKey(app, write_number, member_number)


def read_value(cursor: Cursor, key: HeadKey | MemberKey) -> Head | Member:
    """As ``read_key``; ValueError also for states that there are not."""
    return _read_head(cursor) if isinstance(key, HeadKey) else _read_member(cursor)


def _write_head_key(key: HeadKey, output: Output) -> None:
    write_int16(HEAD_KEY_VERSION, output)
    _write_string(key.app, output)
    _no_tags(output)


def _write_member_key(key: MemberKey, output: Output) -> None:
    write_int16(MEMBER_KEY_VERSION, output)
    _write_string(key.app, output)
    write_int64(key.write_number, output)
    write_int32(key.member_number, output)
    _no_tags(output)


def _write_head(head: Head, output: Output) -> None:
    write_int16(VALUE_VERSION, output)
    _write_int8(head.state, output)
    write_int64(head.version, output)
    write_int64(head.write_number, output)
    write_int64(head.committed_version, output)
    write_int32(head.timeout_ms, output)
    _write_int8(head.is_plain, output)
    write_int64(head.start_ms, output)
    write_int64(head.last_update_ms, output)
    _write_numbers(sorted(head.winners), output)
    _write_runs(list(head.aborted_runs), output)
    owner = head.owner.encode()
    append_uvarint(output.buffer, (head.opened_in >= 0) + bool(owner))
    if head.opened_in >= 0:
        append_uvarint(output.buffer, OPENED_IN_TAG)
        append_uvarint(output.buffer, _INT32_BYTES)
        write_int32(head.opened_in, output)
    if owner:
        append_uvarint(output.buffer, OWNER_TAG)
        append_uvarint(output.buffer, len(owner))
        output.buffer += owner


def _read_head(cursor: Cursor) -> Head:
    head = Head(
        state=AppState(_read_int8(cursor)),
        version=read_int64(cursor),
        write_number=read_int64(cursor),
        committed_version=read_int64(cursor),
        timeout_ms=read_int32(cursor),
        is_plain=bool(_read_int8(cursor)),
        start_ms=read_int64(cursor),
        last_update_ms=read_int64(cursor),
        winners=frozenset(_read_numbers(cursor)),
        aborted_runs=tuple(_read_runs(cursor)),
    )
    opened_in, owner = _read_tags(cursor)
    return replace(head, opened_in=opened_in, owner=owner)


def _read_tags(cursor: Cursor) -> tuple[LeaderEpoch, str]:
    """The tagged fields of a head; others are passed over."""
    opened_in, owner = NO_EPOCH, ""
    for _ in range(read_uvarint(cursor)):
        tag, size_bytes = read_uvarint(cursor), read_uvarint(cursor)
        if tag == OPENED_IN_TAG:
            _check(size_bytes == _INT32_BYTES, tag, size_bytes)
            opened_in = LeaderEpoch(read_int32(cursor))
        elif tag == OWNER_TAG:
            owner = bytes(cursor.take(size_bytes)).decode()
        else:
            cursor.take(size_bytes)
    return opened_in, owner


def _write_member(member: Member, output: Output) -> None:
    write_int16(VALUE_VERSION, output)
    _write_int8(member.state, output)
    _write_string(member.run, output)
    _write_string(member.attempt, output)
    append_compact_length(output.buffer, len(member.topics))
    for topic in member.topics:
        _write_string(topic.name, output)
        write_uuid(topic.topic_id, output)
        _write_numbers(topic.partitions, output)
        _no_tags(output)
    _no_tags(output)


def _read_member(cursor: Cursor) -> Member:
    state = MemberState(_read_int8(cursor))
    run, attempt = FLEXIBLE.string(cursor), FLEXIBLE.string(cursor)
    topics = FLEXIBLE.array(_read_topic, _TOPIC_BYTES_MIN)(cursor)
    FLEXIBLE.end(cursor)
    return Member(state, run, attempt, tuple(topics))


def _read_topic(cursor: Cursor) -> TransactionTopic:
    name, topic_id, numbers = FLEXIBLE.string(cursor), read_uuid(cursor), _read_numbers(cursor)
    FLEXIBLE.end(cursor)
    return TransactionTopic(name, topic_id, tuple(sorted(numbers)))


def _no_tags(output: Output) -> None:
    append_uvarint(output.buffer, 0)


def _written(write: Writer, value: Any) -> bytes:
    output = Output()
    write(value, output)
    return read_parts(output.finish())


def _check(holds: bool, *found: object) -> None:
    if not holds:
        raise ValueError(str(found))
