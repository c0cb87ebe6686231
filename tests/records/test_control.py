"""Transaction markers, byte for byte Kafka's."""

import struct

import pytest

from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker, end_of_transaction
from sparklog.records.envelope import CONTROL_BIT, TRANSACTIONAL_BIT, crc_matches, parse_header
from sparklog.records.filtering.filter import emptied, restamped
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.payload import payload_of


def test_a_marker_is_one_record_with_kafkas_key_and_value():
    batch = build_marker(TransactionEnd(True, 9), producer_id=7, producer_epoch=3, now_ms=1_000)
    header = parse_header(batch)
    assert crc_matches(batch, 0, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert header.attributes == TRANSACTIONAL_BIT | CONTROL_BIT
    assert (header.record_count, header.last_offset_delta, header.max_timestamp_ms) == (1, 0, 1_000)
    row = payload_of(header).to_columns(batch, header).to_pylist()[0]
    assert row["key"] == struct.pack(">hh", 0, 1)
    assert row["value"] == struct.pack(">hi", 0, 9)


@pytest.mark.parametrize("commits", [True, False])
def test_a_marker_says_what_was_decided_and_by_which_coordinator(commits: bool):
    end = TransactionEnd(commits, 2**31 - 1)
    batch = build_marker(end, producer_id=2**62, producer_epoch=0, now_ms=1_000)
    assert end_of_transaction(batch, parse_header(batch)) == end


def test_a_marker_still_says_it_with_a_delete_horizon_and_no_more_when_it_is_empty():
    end = TransactionEnd(False, 4)
    batch = build_marker(end, producer_id=7, producer_epoch=0, now_ms=1_000)
    stamped = restamped(batch, parse_header(batch), 86_400_000)
    assert end_of_transaction(stamped, parse_header(stamped)) == end
    empty = emptied(parse_header(batch))
    assert end_of_transaction(empty, parse_header(empty)) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (struct.pack(">hh", 0, 2), struct.pack(">hi", 0, 9)),
        (struct.pack(">hh", 0, 1), None),
        (struct.pack(">hh", 0, 1), b"\0"),
        (b"", struct.pack(">hi", 0, 9)),
        (None, None),
    ],
    ids=["another type", "no value", "a short value", "a short key", "nothing"],
)
def test_other_control_records_end_no_transaction(key: bytes | None, value: bytes | None):
    batch = build_records_batch([Record(key, value)], now_ms=1, producer_id=7, producer_epoch=0)
    assert end_of_transaction(batch, parse_header(batch)) is None


def test_bytes_that_are_no_record_end_no_transaction():
    batch = build_marker(TransactionEnd(True, 9), producer_id=7, producer_epoch=3, now_ms=1_000)
    batch[61:] = b"\xff" * (len(batch) - 61)
    assert end_of_transaction(batch, parse_header(batch)) is None
