"""What consumers tell each other through the coordinator: subscriptions and assignments (KIP-62, KIP-429).

The coordinator passes both on as bytes. Only the group's leader reads subscriptions and writes assignments;
the coordinator reads subscriptions too, to know the topics of a group.

    subscription = version int16, topics [string], user data bytes,
                   from 1: owned partitions [topic string, partitions [int32]],
                   from 2: generation int32, from 3: rack string
    assignment   = version int16, partitions [topic string, partitions [int32]], user data bytes

Strings have a length of two bytes, arrays and bytes one of four, -1 for null. A later version only adds
fields at the end, so that an unknown version is read as the latest known one.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from sparklog.model.errors import WireError
from sparklog.model.ids import TopicPartition
from sparklog.model.parts import read_parts
from sparklog.wire.primitives import (
    Cursor,
    Output,
    append_int16_length,
    append_int32_length,
    array_reader,
    array_writer,
    bytes_reader,
    bytes_writer,
    number_reader,
    number_writer,
    numbers_reader,
    numbers_writer,
    read_int16_length,
    read_int32_length,
    string_reader,
    string_writer,
)

PROTOCOL_TYPE: Final = "consumer"
"""The protocol type of groups whose members speak this protocol."""

LATEST_VERSION: Final = 3
NO_GENERATION: Final = -1

_OWNED_FROM: Final = 1
_GENERATION_FROM: Final = 2
_RACK_FROM: Final = 3


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants, and what it has: ``owned`` in generation ``generation_id``, -1 if unknown.

    ``user_data`` is the assignor's own.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions of one member."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = LATEST_VERSION) -> bytes:
    """Topics and owned partitions are sorted; fields that ``version`` lacks are left out."""
    output = Output()
    _write_int16(version, output)
    _write_strings(sorted(subscription.topics), output)
    _write_bytes(subscription.user_data, output)
    if version >= _OWNED_FROM:
        _write_partitions(subscription.owned, output)
    if version >= _GENERATION_FROM:
        _write_int32(subscription.generation_id, output)
    if version >= _RACK_FROM:
        _write_nullable_string(subscription.rack, output)
    return read_parts(output.finish())


def decode_subscription(data: bytes | memoryview) -> Subscription:
    """Raises WireError for bytes that are not a subscription."""
    cursor = Cursor(memoryview(data))
    try:
        version = _read_version(cursor)
        topics, user_data = tuple(_read_strings(cursor)), _read_bytes(cursor)
        owned = _read_partitions(cursor) if version >= _OWNED_FROM else ()
        generation_id = _read_int32(cursor) if version >= _GENERATION_FROM else NO_GENERATION
        rack = _read_nullable_string(cursor) if version >= _RACK_FROM else None
    except _MALFORMED as error:
        raise WireError(f"a malformed subscription of {len(data)} bytes: {error}") from error
    return Subscription(topics, _copied(user_data), owned, generation_id, rack or None)


def encode_assignment(assignment: Assignment, version: int = LATEST_VERSION) -> bytes:
    """The partitions of a topic are written together; all versions have the same fields."""
    output = Output()
    _write_int16(version, output)
    _write_partitions(assignment.partitions, output)
    _write_bytes(assignment.user_data, output)
    return read_parts(output.finish())


def decode_assignment(data: bytes | memoryview) -> Assignment:
    """Raises WireError for bytes that are not an assignment. No bytes at all are an empty assignment."""
    if not data:
        return Assignment(())
    cursor = Cursor(memoryview(data))
    try:
        _read_version(cursor)
        partitions, user_data = _read_partitions(cursor), _read_bytes(cursor)
    except _MALFORMED as error:
        raise WireError(f"a malformed assignment of {len(data)} bytes: {error}") from error
    return Assignment(partitions, _copied(user_data))


_MALFORMED: Final = (WireError, struct.error, IndexError, UnicodeDecodeError)

_TOPIC_BYTES_MIN: Final = 6
"""A topic of an array: the lengths of its name and of its partitions."""

_read_int16: Final = number_reader("h")
_read_int32: Final = number_reader("i")
_read_string: Final = string_reader(read_int16_length, nullable=False)
_read_nullable_string: Final = string_reader(read_int16_length, nullable=True)
_read_bytes: Final = bytes_reader(read_int32_length, nullable=True)
_read_numbers: Final = numbers_reader(read_int32_length, "i", nullable=False)
_read_strings: Final = array_reader(read_int32_length, _read_string, 2, nullable=False, entities=False)

_write_int16: Final = number_writer("h")
_write_int32: Final = number_writer("i")
_write_string: Final = string_writer(append_int16_length, nullable=False)
_write_nullable_string: Final = string_writer(append_int16_length, nullable=True)
_write_bytes: Final = bytes_writer(append_int32_length, nullable=True)
_write_numbers: Final = numbers_writer(append_int32_length, "i", nullable=False)
_write_strings: Final = array_writer(append_int32_length, _write_string, nullable=False)


def _read_version(cursor: Cursor) -> int:
    version: int = _read_int16(cursor)
    if version < 0:
        raise WireError(f"version {version}")
    return version


def _read_topic(cursor: Cursor) -> list[TopicPartition]:
    topic = _read_string(cursor)
    return [TopicPartition(topic, partition) for partition in _read_numbers(cursor)]


_read_topics: Final = array_reader(
    read_int32_length, _read_topic, _TOPIC_BYTES_MIN, nullable=False, entities=True
)


def _read_partitions(cursor: Cursor) -> tuple[TopicPartition, ...]:
    return tuple(one for topic in _read_topics(cursor) for one in topic)


def _write_partitions(partitions: Iterable[TopicPartition], output: Output) -> None:
    topics = [(topic, [one.partition for one in group]) for topic, group in _by_topic(partitions)]
    append_int32_length(output.buffer, len(topics))
    for topic, numbers in topics:
        _write_string(topic, output)
        _write_numbers(numbers, output)


def _by_topic(partitions: Iterable[TopicPartition]) -> "groupby[str, TopicPartition]":
    return groupby(sorted(partitions), lambda one: one.topic)


def _copied(data: memoryview | None) -> bytes | None:
    return None if data is None else bytes(data)
