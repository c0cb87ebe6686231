import struct

import pytest

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import (
    ARROW_BIT,
    CONTROL_BIT,
    ENVELOPE_BYTES,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Compression,
    build_envelope,
    crc_matches,
    parse_header,
    split,
    stamp,
)
from sparklog.records.restamp import set_producer


def batch(payload: bytes = b"payload", **fields: int) -> bytearray:
    values = {
        "attributes": 0,
        "record_count": 3,
        "last_offset_delta": 2,
        "base_timestamp_ms": 1_000,
        "max_timestamp_ms": 2_000,
    }
    return bytearray(build_envelope(payload, **(values | fields)))


def test_every_field_is_where_kafka_has_it():
    built = build_envelope(
        b"xyz",
        attributes=0x4013,
        record_count=57,
        last_offset_delta=23,
        base_timestamp_ms=27,
        max_timestamp_ms=35,
        base_offset=7,
        leader_epoch=12,
        producer_id=43,
        producer_epoch=51,
        base_sequence=53,
    )
    assert len(built) == ENVELOPE_BYTES + 3
    for position, form, value in (
        (0, ">q", 7),
        (8, ">i", 52),
        (12, ">i", 12),
        (16, ">b", 2),
        (21, ">h", 0x4013),
        (23, ">i", 23),
        (27, ">q", 27),
        (35, ">q", 35),
        (43, ">q", 43),
        (51, ">h", 51),
        (53, ">i", 53),
        (57, ">i", 57),
    ):
        assert struct.unpack_from(form, built, position) == (value,)
    assert built[61:] == b"xyz"


def test_the_header_says_what_its_bits_mean():
    bits = ARROW_BIT | LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT | Compression.ZSTD
    header = parse_header(batch(attributes=bits, base_offset=10, producer_id=0))
    assert header.is_arrow
    assert header.is_log_append_time
    assert header.is_transactional
    assert header.is_control
    assert header.has_producer
    assert header.compression is Compression.ZSTD
    assert (header.last_offset, header.next_offset) == (12, 13)
    assert header.size_bytes == ENVELOPE_BYTES + 7


def test_an_unknown_codec_is_corrupt_only_for_who_asks():
    header = parse_header(batch(attributes=5))
    with pytest.raises(CorruptBatch, match="no codec 5"):
        _ = header.compression


@pytest.mark.parametrize(
    ("base", "last"), [(-1, -1), (0, 2), (2**31 - 3, 2**31 - 1), (2**31 - 2, 0), (2**31 - 1, 1)]
)
def test_sequences_wrap_to_zero(base: int, last: int):
    assert parse_header(batch(base_sequence=base)).last_sequence == last


def test_a_stamp_changes_offset_and_epoch_and_not_the_crc():
    stamped = bytearray(b"junk") + batch()
    stamp(stamped, 4, 1_000_000, 42)
    header = parse_header(stamped, 4)
    assert (header.base_offset, header.leader_epoch) == (1_000_000, 42)
    assert header.length == ENVELOPE_BYTES + 7 - 12
    assert crc_matches(stamped, 4, header)
    assert stamped[:4] == b"junk"


def test_a_producer_written_afterwards_has_a_crc_that_holds():
    late, early = batch(), batch(producer_id=9, producer_epoch=3, base_sequence=77)
    set_producer(late, 0, 9, 3, 77)
    assert late == early
    with pytest.raises(CorruptBatch, match="lacks its last 1 bytes"):
        set_producer(late[:-1], 0, 9, 3, 77)


def test_a_payload_in_pieces_is_the_same_payload():
    assert batch(b"abcdef") == batch((b"ab", bytearray(b"c"), memoryview(b"def")))  # type: ignore[arg-type]


def test_split_finds_whole_batches_and_leaves_out_a_torn_one():
    first, second = batch(b"a"), batch(b"bb")
    run = first + second + batch(b"ccc")[:-1]
    assert [position for position, _ in split(run)] == [0, len(first)]
    assert split(run[:60]) == []
    assert split(b"") == []
    assert split(memoryview(run))[1][1] == parse_header(second)


def test_split_refuses_garbage_between_batches():
    with pytest.raises(CorruptBatch, match="magic"):
        split(batch() + b"\x07" * 100)


@pytest.mark.parametrize(
    ("position", "form", "value", "complaint"),
    [
        (16, ">b", 1, "magic 1"),
        (16, ">b", 3, "magic 3"),
        (8, ">i", 48, "length 48"),
        (8, ">i", -1, "length -1"),
        (0, ">q", -1, "negative"),
        (23, ">i", -1, "negative"),
        (57, ">i", -1, "negative"),
    ],
)
def test_an_impossible_envelope_is_refused(position: int, form: str, value: int, complaint: str):
    damaged = batch()
    struct.pack_into(form, damaged, position, value)
    with pytest.raises(CorruptBatch, match=complaint):
        parse_header(damaged)


def test_too_few_bytes_are_no_envelope():
    with pytest.raises(CorruptBatch, match="60 bytes"):
        parse_header(batch()[:60])
    with pytest.raises(CorruptBatch, match="0 bytes"):
        parse_header(b"", 5)


def test_every_damaged_byte_of_a_batch_is_noticed_or_outside_the_crc():
    intact = batch()
    for position in range(len(intact)):
        damaged = bytearray(intact)
        damaged[position] ^= 0x40
        try:
            header = parse_header(damaged)
        except CorruptBatch:
            continue
        assert crc_matches(damaged, 0, header) == (position < 8 or 12 <= position < 16), position


def test_a_batch_that_is_not_all_there_has_no_matching_crc():
    whole = batch()
    assert not crc_matches(whole[:-1], 0, parse_header(whole))


def test_headers_are_values():
    assert parse_header(batch()) == parse_header(batch())
    with pytest.raises(AttributeError):
        parse_header(batch()).crc = 1  # type: ignore[misc]
    assert isinstance(parse_header(batch()), BatchHeader)
