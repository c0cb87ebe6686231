"""Offsets as JSON, in the form of Spark's Kafka connector: ``{"topic":{"0":23}}``.

An offset is the next one to read. Keys are sorted by topic, then by partition number, so that equal offsets
are equal texts: Spark compares texts.

A note stands under a key that no topic can have:

    {"$sparklog": {"version": 2, "topics": {"topic": "6ba7b810-…"}, "initial": {"topic": {"0": 20}}},
     "topic": {"0": 23}}

- ``topics``: the ids of the topics that the offsets belong to. A topic that was deleted and created again has
  another id, however long its log is.
- ``initial``, in the end of a first micro-batch only: the initial offsets. If Spark restarts a source before
  its first micro-batch is committed, it asks for them again, and has not saved the first answer.

Version 1, of earlier releases, has no ``topics``, and only the ends of first micro-batches carry it.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any, Final

from sparklog.model.errors import ConfigError, SparklogError
from sparklog.model.ids import TopicId, TopicPartition

Offsets = Mapping[TopicPartition, int]

NOTE_KEY: Final = "$sparklog"
"""Not a legal name of a topic."""

NOTE_VERSION: Final = 2
NOTE_VERSIONS_READ: Final = (1, NOTE_VERSION)

OFFSET_MAX: Final = 2**63 - 1

_OFFSETS_SAMPLE: Final = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_TIMESTAMPS_SAMPLE: Final = '{"topicA":{"0":1700000000000,"1":1700000000000}}'
_ASSIGNMENT_SAMPLE: Final = '{"topicA":[0,1],"topicB":[2,4]}'


def offsets_to_json(
    offsets: Offsets, *, topic_ids: Mapping[str, TopicId] | None = None, initial: Offsets | None = None
) -> dict[str, Any]:
    """The JSON object of these offsets, with the ids of their topics.

    ``initial`` is for the end of a first micro-batch.
    """
    note: dict[str, Any] = {}
    names = {topic_partition.topic for topic_partition in offsets}
    noted = {name: str(topic_id) for name, topic_id in sorted((topic_ids or {}).items()) if name in names}
    if noted:
        note["topics"] = noted
    if initial is not None:
        note["initial"] = _nested(initial)
    return {**({NOTE_KEY: {"version": NOTE_VERSION, **note}} if note else {}), **_nested(offsets)}


def offsets_of_json(nested: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """The offsets of a checkpoint's JSON object, without the note."""
    _checked_note(nested)
    return _flat({topic: inner for topic, inner in nested.items() if topic != NOTE_KEY})


def initial_of_json(nested: Mapping[str, Any]) -> dict[TopicPartition, int] | None:
    """The initial offsets that the end of a first micro-batch carries, or None."""
    note = _checked_note(nested)
    return None if note is None or "initial" not in note else _flat(note["initial"])


def topic_ids_of_json(nested: Mapping[str, Any]) -> dict[str, TopicId]:
    """The ids of the topics that the offsets belong to, as far as they were noted."""
    note = _checked_note(nested)
    noted = {} if note is None else note.get("topics", {})
    return {name: uuid.UUID(text) for name, text in noted.items()}


def parse_offsets(option: str, text: str) -> dict[TopicPartition, int]:
    """An option's offsets per partition: -2 earliest, -1 latest. Ignores the note of a copied offset."""
    if not text.lstrip().startswith("{"):
        raise ConfigError(f"option {option}={text!r}: expected earliest, latest, or e.g. {_OFFSETS_SAMPLE}")
    offsets = _parse_numbers(option, text, _OFFSETS_SAMPLE, "-2 for earliest, -1 for latest, or an offset")
    for topic_partition, offset in offsets.items():
        if not -2 <= offset <= OFFSET_MAX:
            raise ConfigError(
                f"option {option}: {topic_partition} has offset {offset}; "
                "use -2 (earliest), -1 (latest), or an offset "
                f"up to {OFFSET_MAX}"
            )
    return offsets


def parse_timestamps(option: str, text: str) -> dict[TopicPartition, int]:
    """An option's timestamps per partition, in milliseconds since 1970."""
    return _parse_numbers(option, text, _TIMESTAMPS_SAMPLE, "milliseconds since 1970")


def parse_assignment(option: str, text: str) -> list[TopicPartition]:
    """An option's partitions: ``{"topicA":[0,1]}``."""
    nested = _parse_object(option, text, _ASSIGNMENT_SAMPLE)
    topic_partitions: list[TopicPartition] = []
    for topic, numbers in nested.items():
        if not isinstance(numbers, list) or not all(_is_partition(number) for number in numbers):
            raise _malformed(option, text, _ASSIGNMENT_SAMPLE)
        topic_partitions.extend(TopicPartition(topic, number) for number in numbers)
    return sorted(set(topic_partitions))


def _nested(offsets: Offsets) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for topic_partition in sorted(offsets):
        nested.setdefault(topic_partition.topic, {})[str(topic_partition.partition)] = offsets[
            topic_partition
        ]
    return nested


def _flat(nested: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(number)): int(offset)
        for topic, inner in nested.items()
        for number, offset in inner.items()
    }


def _checked_note(nested: Mapping[str, Any]) -> Mapping[str, Any] | None:
    note = nested.get(NOTE_KEY)
    if note is None:
        return None
    if note.get("version") not in NOTE_VERSIONS_READ:
        raise SparklogError(
            f"the checkpoint's offset has a note of version {note.get('version')!r}, but this release reads "
            f"versions 1 to {NOTE_VERSION}; use the release that wrote the checkpoint, or a newer one"
        )
    return dict(note)


def _parse_numbers(option: str, text: str, sample: str, values: str) -> dict[TopicPartition, int]:
    nested = _parse_object(option, text, sample)
    nested.pop(NOTE_KEY, None)
    numbers: dict[TopicPartition, int] = {}
    for topic, inner in nested.items():
        if not isinstance(inner, dict):
            raise _malformed(option, text, sample)
        for key, value in inner.items():
            if not key.isascii() or not key.isdigit() or not _is_integer(value):
                raise ConfigError(
                    f"option {option}: {key!r}: {value!r} of topic {topic!r} is not a partition "
                    f"with {values}; expected something like {sample}"
                )
            topic_partition = TopicPartition(topic, int(key))
            if topic_partition in numbers:  # "0" and "00"
                raise _double(option, key, text)
            numbers[topic_partition] = value
    return numbers


def _parse_object(option: str, text: str, sample: str) -> dict[str, Any]:
    def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            raise _double(option, next(key for key in keys if keys.count(key) > 1), text)
        return found

    try:
        parsed = json.loads(text, object_pairs_hook=without_doubles)
    except ValueError:
        raise _malformed(option, text, sample) from None
    if not isinstance(parsed, dict):
        raise _malformed(option, text, sample)
    return parsed


def _double(option: str, key: str, text: str) -> ConfigError:
    return ConfigError(f"option {option}: {key!r} is named twice, and only one can count; merge them: {text}")


def _malformed(option: str, text: str, sample: str) -> ConfigError:
    return ConfigError(f"option {option}: expected e.g. {sample}, got {text}")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_partition(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
