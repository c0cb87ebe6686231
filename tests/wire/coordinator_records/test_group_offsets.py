"""The records of ``__consumer_offsets``: every version that Kafka has, and damage."""

import random
import struct

import pytest

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.group.records import GroupKey, GroupValue, OffsetKey, OffsetValue
from sparklog.model.errors import WireError
from sparklog.wire.coordinator_records.group_offsets import GroupOffsetsCodec
from sparklog.wire.coordinator_records.record_codec import UnreadableRecord
from tests.wire.coordinator_records.golden import (
    GROUP_BYTES,
    GROUP_KEY,
    GROUP_KEY_BYTES,
    GROUPS,
    OFFSET_BYTES,
    OFFSET_KEY,
    OFFSET_KEY_BYTES,
    OFFSETS,
)

CODEC = GroupOffsetsCodec()


@pytest.mark.parametrize("version", OFFSETS)
def test_a_committed_offset_is_read_in_every_version(version: int) -> None:
    read = CODEC.decode(OFFSET_KEY_BYTES, OFFSET_BYTES[version])
    assert read == StateRecord(OFFSET_KEY, OFFSETS[version])


@pytest.mark.parametrize("version", GROUPS)
def test_a_generation_is_read_in_every_version(version: int) -> None:
    assert CODEC.decode(GROUP_KEY_BYTES, GROUP_BYTES[version]) == StateRecord(GROUP_KEY, GROUPS[version])


def test_an_offset_key_of_version_0_has_the_same_layout() -> None:
    old = b"\x00\x00" + OFFSET_KEY_BYTES[2:]
    assert CODEC.decode(old, OFFSET_BYTES[3]) == StateRecord(OFFSET_KEY, OFFSETS[3])


def test_what_is_written_has_kafka_s_bytes() -> None:
    offset = CODEC.encode(StateRecord(OFFSET_KEY, OFFSETS[3]))
    assert offset == (OFFSET_KEY_BYTES, OFFSET_BYTES[3])
    group = CODEC.encode(StateRecord(GROUP_KEY, GROUPS[3]))
    assert group == (GROUP_KEY_BYTES, GROUP_BYTES[3])


def test_an_offset_with_a_time_of_expiry_is_written_in_version_1() -> None:
    expiring = OffsetValue(42, 5, "me", 256, 512)
    assert CODEC.encode(StateRecord(OFFSET_KEY, expiring)).value == OFFSET_BYTES[1]


def test_an_empty_group_has_neither_protocol_nor_leader_nor_members() -> None:
    empty = GroupValue("consumer", 4, None, None, 768, ())
    written = CODEC.encode(StateRecord(GROUP_KEY, empty))
    assert written.value == (
        b"\x00\x03\x00\x08consumer\x00\x00\x00\x04\xff\xff\xff\xff"
        b"\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00"
    )
    assert CODEC.decode(*written) == StateRecord(GROUP_KEY, empty)


@pytest.mark.parametrize("key", [OFFSET_KEY, GROUP_KEY])
def test_a_tombstone_has_a_key_only(key: OffsetKey | GroupKey) -> None:
    written = CODEC.encode(StateRecord(key, None))
    assert written.value is None
    assert CODEC.decode(written.key, None) == StateRecord(key, None)


def test_a_name_longer_than_its_length_field_is_refused() -> None:
    with pytest.raises(WireError, match="longer than 32767"):
        CODEC.encode(StateRecord(GroupKey("g" * 32_768), None))


# What nobody understands


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (None, b"", "a record without a key"),
        (b"", None, "a key of version None"),
        (b"\x00\x03\x00\x03grp", b"\x00\x00", "a key of version 3"),
        (b"\xff\xff", b"", "a key of version -1"),
        (b"\x00\x01\x00\x03gr", None, "a malformed key of version 1"),
        (OFFSET_KEY_BYTES, b"\x00\x05" + OFFSET_BYTES[3][2:], "a committed offset of version 5"),
        (OFFSET_KEY_BYTES, OFFSET_BYTES[3][:-1], "a committed offset of version 3 that is malformed"),
        (OFFSET_KEY_BYTES, b"\x00", "a committed offset of version None"),
        (GROUP_KEY_BYTES, b"\x00\x09", "a generation of a group of version 9"),
        (GROUP_KEY_BYTES, GROUP_BYTES[4][:-3], "a generation of a group of version 4 that is malformed"),
    ],
)
def test_a_record_that_nobody_understands_is_named(key: bytes | None, value: bytes | None, kind: str) -> None:
    assert CODEC.decode(key, value) == UnreadableRecord(kind)


def test_a_count_of_members_without_members_takes_no_memory() -> None:
    hostile = GROUP_BYTES[3][:33] + struct.pack(">i", 2**31 - 1)
    assert CODEC.decode(GROUP_KEY_BYTES, hostile) == UnreadableRecord(
        "a generation of a group of version 3 that is malformed"
    )


@pytest.mark.parametrize("version", range(5))
def test_damaged_values_never_raise(version: int) -> None:
    rng = random.Random(version)
    for key, value in ((OFFSET_KEY_BYTES, OFFSET_BYTES[version]), (GROUP_KEY_BYTES, GROUP_BYTES[version])):
        for _ in range(500):
            damaged = bytearray(value)
            for _ in range(rng.randrange(1, 4)):
                damaged[rng.randrange(2, len(damaged))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            assert isinstance(CODEC.decode(key, bytes(damaged)), StateRecord | UnreadableRecord)
