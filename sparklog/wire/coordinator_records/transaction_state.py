"""The codec of ``__transaction_state``: Kafka's TransactionLogKey and TransactionLogValue.

Keys are written in version 0, values in version 1, the first flexible one. What Kafka's record has no room
for are tagged fields of ours, which Kafka's software skips. ``docs/format/transaction-state.md`` has the
layout.
"""

import struct
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.transaction_coordinator.records import TransactionKey, TransactionTopic, TransactionValue
from sparklog.core.transaction_coordinator.states import TransactionState
from sparklog.model.errors import WireError
from sparklog.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TOPIC_ID, TopicId
from sparklog.model.parts import read_parts
from sparklog.wire.coordinator_records.record_codec import EncodedRecord, UnreadableRecord
from sparklog.wire.coordinator_records.record_layout import (
    FLEXIBLE,
    PLAIN,
    VERSION_BYTES,
    Layout,
    read_int32,
    read_int64,
    write_int16,
    write_int32,
    write_int64,
    write_string,
)
from sparklog.wire.primitives import (
    Cursor,
    Output,
    append_compact_length,
    append_uvarint,
    array_reader,
    array_writer,
    number_reader,
    number_writer,
    numbers_reader,
    numbers_writer,
    read_compact_length,
    read_int32_length,
    read_uuid,
    read_uvarint,
    string_writer,
    write_uuid,
)

KEY_VERSION: Final = 0
VALUE_VERSIONS: Final = range(2)
VALUE_VERSION: Final = 1

PREVIOUS_PRODUCER_ID_TAG: Final = 0
"""Kafka's, from 3.8 on."""
TOPIC_IDS_TAG: Final = 5_000
"""Ours: the ids of the topics, in their order."""
LAST_PRODUCER_EPOCH_TAG: Final = 5_001
"""Ours: the epoch that InitProducerId replaced at the request of the producer itself."""

_MALFORMED: Final = (WireError, struct.error, IndexError, UnicodeDecodeError)
_MS_MIN: Final = -1
_TOPIC_BYTES_MIN: Final = 3

_read_int8: Final = number_reader("b")
_read_int16: Final = number_reader("h")
_write_int8: Final = number_writer("b")
_write_topic_name: Final = string_writer(append_compact_length, nullable=False)
_write_numbers: Final = numbers_writer(append_compact_length, "i", nullable=False)
_write_topic_ids: Final = array_writer(append_compact_length, write_uuid, nullable=False)
_read_topic_ids: Final = array_reader(read_compact_length, read_uuid, 16, nullable=False, entities=False)


class TransactionStateCodec:
    """A ``RecordCodec`` of ``TransactionKey`` with ``TransactionValue``."""

    def encode(self, record: StateRecord) -> EncodedRecord:
        key = Output()
        write_int16(KEY_VERSION, key)
        write_string(record.key.transactional_id, key)
        if record.value is None:
            return EncodedRecord(read_parts(key.finish()), None)
        value = Output()
        _write_value(record.value, value)
        return EncodedRecord(read_parts(key.finish()), read_parts(value.finish()))

    def decode(
        self, key: bytes | memoryview | None, value: bytes | memoryview | None
    ) -> StateRecord | UnreadableRecord:
        if key is None:
            return UnreadableRecord("a record without a key")
        version = _version_of(key)
        if version != KEY_VERSION:
            return UnreadableRecord(f"a key of version {version}")
        try:
            transactional_id = PLAIN.string(Cursor(memoryview(key), VERSION_BYTES))
        except _MALFORMED:
            return UnreadableRecord(f"a malformed key of version {version}")
        if value is None:
            return StateRecord(TransactionKey(transactional_id), None)
        version = _version_of(value)
        if version not in VALUE_VERSIONS:
            return UnreadableRecord(f"a transactional id's state of version {version}")
        try:
            read = _read_value(Cursor(memoryview(value), VERSION_BYTES), version)
        except (*_MALFORMED, ValueError):
            return UnreadableRecord(f"a transactional id's state of version {version} that is malformed")
        return StateRecord(TransactionKey(transactional_id), read)


def _version_of(record_part: bytes | memoryview) -> int:
    """The version with which a key or a value begins; -1 if it is too short to have one."""
    if len(record_part) < VERSION_BYTES:
        return -1
    return int.from_bytes(record_part[:VERSION_BYTES], "big", signed=True)


def _write_value(value: TransactionValue, output: Output) -> None:
    write_int16(VALUE_VERSION, output)
    write_int64(value.producer_id, output)
    write_int16(value.producer_epoch, output)
    write_int32(value.timeout_ms, output)
    _write_int8(value.state, output)
    _write_topics(value, output)
    write_int64(value.last_update_ms, output)
    write_int64(value.start_ms, output)
    _write_tags(_tags(value), output)


def _write_topics(value: TransactionValue, output: Output) -> None:
    """Kafka writes null in the state Empty, and an array in every other."""
    is_null = value.state is TransactionState.EMPTY
    append_compact_length(output.buffer, None if is_null else len(value.topics))
    for topic in value.topics:
        _write_topic_name(topic.name, output)
        _write_numbers(topic.partitions, output)
        append_uvarint(output.buffer, 0)


def _tags(value: TransactionValue) -> dict[int, bytes]:
    """The tagged fields that differ from their defaults, in ascending order."""
    tags: dict[int, bytes] = {}
    if value.previous_producer_id != NO_PRODUCER_ID:
        tags[PREVIOUS_PRODUCER_ID_TAG] = _written(write_int64, value.previous_producer_id)
    if any(topic.topic_id != NO_TOPIC_ID for topic in value.topics):
        tags[TOPIC_IDS_TAG] = _written(_write_topic_ids, [topic.topic_id for topic in value.topics])
    if value.last_producer_epoch != NO_PRODUCER_EPOCH:
        tags[LAST_PRODUCER_EPOCH_TAG] = _written(write_int16, value.last_producer_epoch)
    return tags


def _written(write: Callable[[Any, Output], None], value: Any) -> bytes:
    output = Output()
    write(value, output)
    return read_parts(output.finish())


def _write_tags(tags: dict[int, bytes], output: Output) -> None:
    append_uvarint(output.buffer, len(tags))
    for tag, content in tags.items():
        append_uvarint(output.buffer, tag)
        append_uvarint(output.buffer, len(content))
        output.buffer += content


def _read_value(cursor: Cursor, version: int) -> TransactionValue:
    """Raises ValueError for a state that there is not, and for numbers that no coordinator writes."""
    is_flexible = version >= VALUE_VERSION
    layout = FLEXIBLE if is_flexible else PLAIN
    read_length = read_compact_length if is_flexible else read_int32_length
    producer_id, producer_epoch, timeout_ms = read_int64(cursor), _read_int16(cursor), read_int32(cursor)
    state = TransactionState(_read_int8(cursor))
    read_topics = array_reader(
        read_length,
        partial(_read_topic, layout, read_length),
        _TOPIC_BYTES_MIN,
        nullable=True,
        entities=True,
    )
    named = read_topics(cursor) or []
    last_update_ms, start_ms = read_int64(cursor), read_int64(cursor)
    tags = _read_tags(cursor) if is_flexible else {}
    topic_ids: list[TopicId] = _tag(tags, TOPIC_IDS_TAG, _read_topic_ids, [NO_TOPIC_ID] * len(named))
    if producer_id < 0 or producer_epoch < 0:
        raise ValueError(f"producer id {producer_id}, epoch {producer_epoch}")
    return TransactionValue(
        producer_id,
        producer_epoch,
        timeout_ms,
        state,
        tuple(
            TransactionTopic(name, topic_id, numbers)
            for (name, numbers), topic_id in zip(named, topic_ids, strict=True)
        ),
        last_update_ms,
        max(start_ms, _MS_MIN),
        _tag(tags, PREVIOUS_PRODUCER_ID_TAG, read_int64, NO_PRODUCER_ID),
        _tag(tags, LAST_PRODUCER_EPOCH_TAG, _read_int16, NO_PRODUCER_EPOCH),
    )


def _read_topic(
    layout: Layout, read_length: Callable[[Cursor], int], cursor: Cursor
) -> tuple[str, tuple[int, ...]]:
    name = layout.string(cursor)
    numbers = numbers_reader(read_length, "i", nullable=False)(cursor)
    layout.end(cursor)
    return name, tuple(sorted(numbers))


def _read_tags(cursor: Cursor) -> dict[int, memoryview]:
    tags: dict[int, memoryview] = {}
    for _ in range(read_uvarint(cursor)):
        tag = read_uvarint(cursor)
        tags[tag] = memoryview(cursor.take(read_uvarint(cursor)))
    return tags


def _tag(tags: dict[int, memoryview], tag: int, read: Callable[[Cursor], Any], default: Any) -> Any:
    return read(Cursor(tags[tag], 0)) if tag in tags else default
