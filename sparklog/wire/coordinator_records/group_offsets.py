"""The codec of ``__consumer_offsets``: committed offsets, and the generations of groups.

Kafka's later group protocols write keys of versions 3 and above; they are unreadable here.
"""

import struct
from typing import Any, Final

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.group.records import GroupKey, GroupValue, OffsetKey, OffsetValue
from sparklog.model.errors import WireError
from sparklog.model.parts import read_parts
from sparklog.wire.coordinator_records import group_metadata, offset_commit
from sparklog.wire.coordinator_records.record_codec import EncodedRecord, UnreadableRecord
from sparklog.wire.coordinator_records.record_layout import VERSION_BYTES
from sparklog.wire.primitives import Cursor, Output, Writer

_MALFORMED: Final = (WireError, struct.error, IndexError, UnicodeDecodeError)
"""All that a reader can raise over bytes that are not a record."""


class GroupOffsetsCodec:
    """A ``RecordCodec`` of ``OffsetKey`` with ``OffsetValue``, and of ``GroupKey`` with ``GroupValue``."""

    def encode(self, record: StateRecord) -> EncodedRecord:
        key = _written(_WRITERS[type(record.key)], record.key)
        if record.value is None:
            return EncodedRecord(key, None)
        return EncodedRecord(key, _written(_WRITERS[type(record.value)], record.value))

    def decode(
        self, key: bytes | memoryview | None, value: bytes | memoryview | None
    ) -> StateRecord | UnreadableRecord:
        if key is None:
            return UnreadableRecord("a record without a key")
        version = _version_of(key)
        kind = _KIND_OF_KEY.get(version)
        if kind is None:
            return UnreadableRecord(f"a key of version {version}")
        try:
            decoded_key = kind.read_key(_after_version(key))
        except _MALFORMED:
            return UnreadableRecord(f"a malformed key of version {version}")
        if value is None:
            return StateRecord(decoded_key, None)
        return _with_value(decoded_key, kind, value)


def _with_value(key: Any, kind: Any, value: bytes | memoryview) -> StateRecord | UnreadableRecord:
    version, name = _version_of(value), _VALUE_NAMES[type(key)]
    if version not in kind.VALUE_VERSIONS:
        return UnreadableRecord(f"{name} of version {version}")
    try:
        return StateRecord(key, kind.read_value(_after_version(value), version))
    except _MALFORMED:
        return UnreadableRecord(f"{name} of version {version} that is malformed")


def _version_of(record_part: bytes | memoryview) -> int | None:
    """The version with which a key or a value begins; None if it is too short to have one."""
    if len(record_part) < VERSION_BYTES:
        return None
    return int.from_bytes(record_part[:VERSION_BYTES], "big", signed=True)


def _after_version(record_part: bytes | memoryview) -> Cursor:
    return Cursor(memoryview(record_part), VERSION_BYTES)


def _written(write: Writer, value: Any) -> bytes:
    output = Output()
    write(value, output)
    return read_parts(output.finish())


_KIND_OF_KEY: Final[dict[int | None, Any]] = {
    version: kind for kind in (offset_commit, group_metadata) for version in kind.KEY_VERSIONS
}

_WRITERS: Final[dict[type, Writer]] = {
    OffsetKey: offset_commit.write_key,
    OffsetValue: offset_commit.write_value,
    GroupKey: group_metadata.write_key,
    GroupValue: group_metadata.write_value,
}

_VALUE_NAMES: Final[dict[type, str]] = {
    OffsetKey: "a committed offset",
    GroupKey: "a generation of a group",
}
