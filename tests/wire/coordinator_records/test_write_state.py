"""The records of atomic writes and agreements, beside Kafka's in the same topic: their bytes, and damage."""

import random
from dataclasses import replace

import pytest

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.transaction_coordinator.records import TransactionKey, TransactionValue
from sparklog.core.transaction_coordinator.states import TransactionState
from sparklog.wire.coordinator_records.record_codec import UnreadableRecord
from sparklog.wire.coordinator_records.transaction_topic import TransactionTopicCodec
from tests.wire.coordinator_records.golden_writes import (
    AGREEMENT,
    AGREEMENT_BYTES,
    AGREEMENT_KEY,
    AGREEMENT_KEY_BYTES,
    HEAD,
    HEAD_BYTES,
    HEAD_KEY,
    HEAD_KEY_BYTES,
    MEMBER,
    MEMBER_BYTES,
    MEMBER_KEY,
    MEMBER_KEY_BYTES,
)

CODEC = TransactionTopicCodec()

RECORDS = {
    "head": (StateRecord(HEAD_KEY, HEAD), (HEAD_KEY_BYTES, HEAD_BYTES)),
    "member": (StateRecord(MEMBER_KEY, MEMBER), (MEMBER_KEY_BYTES, MEMBER_BYTES)),
    "agreement": (StateRecord(AGREEMENT_KEY, AGREEMENT), (AGREEMENT_KEY_BYTES, AGREEMENT_BYTES)),
}


@pytest.mark.parametrize("which", RECORDS)
def test_a_record_has_its_bytes_and_is_read_from_them(which):
    record, written = RECORDS[which]
    assert CODEC.encode(record) == written
    assert CODEC.decode(*written) == record


@pytest.mark.parametrize("opened_in", [-1, 3])
def test_an_owner_is_a_tagged_field_after_the_records_of_before(opened_in):
    head = replace(HEAD, opened_in=opened_in)
    owned = StateRecord(HEAD_KEY, replace(head, owner="User:alïce"))
    written = CODEC.encode(owned)
    assert CODEC.decode(*written) == owned
    assert written.value.startswith(CODEC.encode(StateRecord(HEAD_KEY, head)).value[:20])
    assert "User:alïce".encode() in written.value


def test_a_value_of_a_principal_has_a_key_of_its_own():
    key = replace(AGREEMENT_KEY, principal="User:alice")
    written = CODEC.encode(StateRecord(key, AGREEMENT))
    assert written.key == AGREEMENT_KEY_BYTES[:-1] + b"\x01\x00\x0aUser:alice"
    assert CODEC.decode(*written) == StateRecord(key, AGREEMENT)


@pytest.mark.parametrize("which", RECORDS)
def test_a_tombstone_has_a_key_only(which):
    key = RECORDS[which][0].key
    written = CODEC.encode(StateRecord(key, None))
    assert written.value is None
    assert CODEC.decode(*written) == StateRecord(key, None)


def test_a_transactional_id_of_the_same_name_is_another_key():
    value = TransactionValue(5, 0, 60_000, TransactionState.EMPTY, (), 7)
    record = StateRecord(TransactionKey("query-7"), value)
    written = CODEC.encode(record)
    assert written.key != HEAD_KEY_BYTES
    assert CODEC.decode(*written) == record


def test_a_tagged_field_of_a_later_release_is_passed_over():
    later = HEAD_BYTES[:-1] + b"\x01\x07\x02hi"
    assert CODEC.decode(HEAD_KEY_BYTES, later) == StateRecord(HEAD_KEY, HEAD)


def test_a_head_has_the_epoch_of_its_coordinator_in_a_tagged_field():
    opened = StateRecord(HEAD_KEY, replace(HEAD, opened_in=258))
    written = HEAD_BYTES[:-1] + b"\x01\x00\x04\x00\x00\x01\x02"
    assert CODEC.encode(opened) == (HEAD_KEY_BYTES, written)
    assert CODEC.decode(HEAD_KEY_BYTES, written) == opened
    both = HEAD_BYTES[:-1] + b"\x02\x00\x04\x00\x00\x01\x02\x07\x02hi"
    assert CODEC.decode(HEAD_KEY_BYTES, both) == opened


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (None, b"", "a record without a key"),
        (b"\x27", b"", "a key of version -1"),
        (b"\x27\x13\x02a\x00", b"", "a key of version 10003"),
        (b"\x27\x10", b"", "a malformed key of version 10000"),
        (MEMBER_KEY_BYTES[:-5] + b"\xff\xff\xff\xff\x00", None, "a malformed key of version 10001"),
        (b"\x27\x12\x09a\x00", None, "a malformed key of version 10002"),
        (AGREEMENT_KEY_BYTES, b"\x00\x01", "an agreement of version 1"),
        (AGREEMENT_KEY_BYTES, AGREEMENT_BYTES[:-2], "an agreement of version 0 that is malformed"),
        (HEAD_KEY_BYTES, b"\x00", "a write's state of version -1"),
        (HEAD_KEY_BYTES, b"\x00\x01" + HEAD_BYTES[2:], "a write's state of version 1"),
        (HEAD_KEY_BYTES, b"\x00\x00\x09" + HEAD_BYTES[3:], "a write's state of version 0 that is malformed"),
        (
            HEAD_KEY_BYTES,
            HEAD_BYTES[:-1] + b"\x01\x00\x03\x00\x00\x01",
            "a write's state of version 0 that is malformed",
        ),
        (MEMBER_KEY_BYTES, MEMBER_BYTES[:-9], "a write's state of version 0 that is malformed"),
    ],
)
def test_what_nobody_understands_is_named(key, value, kind):
    assert CODEC.decode(key, value) == UnreadableRecord(kind)


@pytest.mark.parametrize("which", RECORDS)
def test_damaged_bytes_are_read_or_refused_but_never_raise(which):
    key, value = RECORDS[which][1]
    dice = random.Random(7)
    for _ in range(3_000):
        damaged = [bytearray(key), bytearray(value)]
        for part in damaged:
            for _ in range(dice.randrange(3)):
                part[dice.randrange(len(part))] = dice.randrange(256)
            del part[dice.randrange(len(part) + 1) :]
        CODEC.decode(bytes(damaged[0]), bytes(damaged[1]))
