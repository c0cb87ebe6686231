"""The records of ``__transaction_state``: Kafka's two versions, our tags, and damage."""

import random
import string
import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.core.coordinator.actions import StateRecord
from sparklog.core.transaction_coordinator.records import TransactionKey, TransactionTopic, TransactionValue
from sparklog.core.transaction_coordinator.states import TransactionState
from sparklog.model.errors import WireError
from sparklog.model.ids import NO_TOPIC_ID
from sparklog.wire.coordinator_records.record_codec import UnreadableRecord
from sparklog.wire.coordinator_records.transaction_state import TransactionStateCodec
from tests.wire.coordinator_records.golden_transactions import (
    COMPLETE,
    COMPLETE_BYTES,
    EMPTY,
    EMPTY_BYTES,
    KEY,
    KEY_BYTES,
    ONGOING,
    ONGOING_0_BYTES,
    ONGOING_1_BYTES,
    OURS,
    OURS_BYTES,
)

CODEC = TransactionStateCodec()
READ = {
    "version 0": (ONGOING_0_BYTES, ONGOING),
    "version 1": (ONGOING_1_BYTES, ONGOING),
    "our tags": (OURS_BYTES, OURS),
    "Empty, version 0": (EMPTY_BYTES[0], EMPTY),
    "Empty, version 1": (EMPTY_BYTES[1], EMPTY),
    "CompleteCommit": (COMPLETE_BYTES, COMPLETE),
}


@pytest.mark.parametrize("name", READ)
def test_kafka_s_bytes_and_ours_are_read(name: str) -> None:
    data, value = READ[name]
    assert CODEC.decode(KEY_BYTES, data) == StateRecord(KEY, value)
    assert CODEC.decode(memoryview(KEY_BYTES), memoryview(data)) == StateRecord(KEY, value)


@pytest.mark.parametrize(
    ("value", "data"),
    [(ONGOING, ONGOING_1_BYTES), (OURS, OURS_BYTES), (EMPTY, EMPTY_BYTES[1]), (COMPLETE, COMPLETE_BYTES)],
)
def test_what_is_written_is_version_1(value: TransactionValue, data: bytes) -> None:
    assert CODEC.encode(StateRecord(KEY, value)) == (KEY_BYTES, data)


def test_a_tombstone_has_a_key_only() -> None:
    written = CODEC.encode(StateRecord(KEY, None))
    assert written == (KEY_BYTES, None)
    assert CODEC.decode(*written) == StateRecord(KEY, None)


def test_partitions_are_read_in_order_whatever_order_they_were_written_in() -> None:
    turned = ONGOING_0_BYTES.replace(b"\x00\x00\x00\x00\x00\x00\x00\x03", b"\x00\x00\x00\x03\x00\x00\x00\x00")
    assert turned != ONGOING_0_BYTES
    assert CODEC.decode(KEY_BYTES, turned) == StateRecord(KEY, ONGOING)


def test_tags_that_we_do_not_know_are_skipped() -> None:
    """Kafka 4 has two more: the next producer id (1), and the version of the client's transactions (2)."""
    theirs = b"\x03" + b"\x01\x08" + b"\xff" * 8 + b"\x02\x02\x00\x02" + b"\xe7\x07\x01\x2a"
    assert CODEC.decode(KEY_BYTES, ONGOING_1_BYTES[:-1] + theirs) == StateRecord(KEY, ONGOING)


_topics = st.lists(
    st.builds(
        TransactionTopic,
        st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=249),
        st.one_of(st.just(NO_TOPIC_ID), st.uuids()),
        st.sets(st.integers(0, 2**31 - 1), min_size=1, max_size=5).map(lambda found: tuple(sorted(found))),
    ),
    max_size=4,
    unique_by=lambda topic: topic.name,
).map(tuple)
_times = st.integers(0, 2**53)
_values = st.builds(
    TransactionValue,
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**15 - 1),
    st.integers(1, 2**31 - 1),
    st.sampled_from([state for state in TransactionState if state is not TransactionState.EMPTY]),
    _topics,
    _times,
    st.one_of(st.just(-1), _times),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**15 - 1),
)


@given(st.text(min_size=1, max_size=300).filter(lambda text: text.isprintable()), _values)
def test_what_was_written_is_read(transactional_id: str, value: TransactionValue) -> None:
    record = StateRecord(TransactionKey(transactional_id), value)
    assert CODEC.decode(*CODEC.encode(record)) == record


def test_an_id_longer_than_its_length_field_is_refused() -> None:
    with pytest.raises(WireError, match="longer than 32767"):
        CODEC.encode(StateRecord(TransactionKey("t" * 32_768), None))


# What nobody understands


def changed(data: bytes, at: int, to: bytes) -> bytes:
    return data[:at] + to + data[at + len(to) :]


MALFORMED = "a transactional id's state of version {} that is malformed"


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (None, b"", "a record without a key"),
        (b"", None, "a key of version -1"),
        (b"\x00", None, "a key of version -1"),
        (b"\x00\x01\x00\x03txn", ONGOING_1_BYTES, "a key of version 1"),
        (b"\x00\x00\x00\x04txn", None, "a malformed key of version 0"),
        (b"\x00\x00\x00\x01\xff", None, "a malformed key of version 0"),
        (KEY_BYTES, b"", "a transactional id's state of version -1"),
        (KEY_BYTES, changed(ONGOING_1_BYTES, 0, b"\x00\x02"), "a transactional id's state of version 2"),
        (KEY_BYTES, ONGOING_0_BYTES[:-1], MALFORMED.format(0)),
        (KEY_BYTES, ONGOING_1_BYTES[:-1], MALFORMED.format(1)),
        (KEY_BYTES, OURS_BYTES[:-1], MALFORMED.format(1)),
        (KEY_BYTES, changed(ONGOING_1_BYTES, 16, b"\x08"), MALFORMED.format(1)),
        (KEY_BYTES, changed(ONGOING_1_BYTES, 2, b"\xff" * 8), MALFORMED.format(1)),
        (KEY_BYTES, changed(ONGOING_1_BYTES, 10, b"\xff\xff"), MALFORMED.format(1)),
    ],
)
def test_a_record_that_nobody_understands_is_named(key: bytes | None, value: bytes | None, kind: str) -> None:
    assert CODEC.decode(key, value) == UnreadableRecord(kind)


def test_topic_ids_that_are_not_as_many_as_topics_are_malformed() -> None:
    one = b"\x01" + b"\x88\x27\x11\x02" + uuid.uuid4().bytes
    found = CODEC.decode(KEY_BYTES, ONGOING_1_BYTES[:-1] + one)
    assert found == UnreadableRecord(MALFORMED.format(1))


def test_a_count_of_topics_without_topics_takes_no_memory() -> None:
    hostile = ONGOING_0_BYTES[:17] + struct.pack(">i", 2**31 - 1)
    assert CODEC.decode(KEY_BYTES, hostile) == UnreadableRecord(MALFORMED.format(0))


@pytest.mark.parametrize("data", [ONGOING_0_BYTES, ONGOING_1_BYTES, OURS_BYTES])
def test_damaged_values_never_raise(data: bytes) -> None:
    rng = random.Random(len(data))
    for _ in range(2_000):
        damaged = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(2, len(damaged))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        assert isinstance(CODEC.decode(KEY_BYTES, bytes(damaged)), StateRecord | UnreadableRecord)
    for size in range(len(data)):
        assert isinstance(CODEC.decode(KEY_BYTES, data[:size]), UnreadableRecord)
