"""A producer's messages of formats 0 and 1 as a batch, and those that are refused."""

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import ErrorCode
from sparklog.records.codecs import compress
from sparklog.records.envelope import LOG_APPEND_TIME_BIT, Compression, crc_matches
from sparklog.records.kafka.kafka_payload import records_of
from sparklog.records.kafka.walk import walk
from sparklog.records.legacy.lz4_header import with_checksum_of_format_0
from sparklog.records.legacy.message import build
from sparklog.records.legacy.to_batch import batch_of_messages
from sparklog.records.recompress import Codec
from sparklog.records.validate import RefusedBatch, check_produced

MAX_BYTES = 1 << 20
TIME_MS = 1_500_000_000_000
CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4]

SNAPPY_OF_AIOKAFKA = {
    0: "000000000000000000000053f03a9d660002ffffffff0000004582534e41505059000000000100000001000000315400"
    "00190110101fecd70a050f18016b0000000176050c540000010000002cd9978fc40000ffffffff0000001e77720100",
    1: "0000000000000000000000661341034c01020000000000000000ffffffff0000005082534e4150505900000000010000"
    "00010000003c64000019013418bf070c1c01000000015d3ef798011804016b010e0076010b01091c0000003439ba502f"
    "010905242401ffffffff0000001e77720100",
}


def convert(sent: bytes, codec: Codec | None = None, max_batch_bytes: int = MAX_BYTES):
    return batch_of_messages(memoryview(sent), codec, max_batch_bytes=max_batch_bytes)


def converted(sent: bytes, codec: Codec | None = None):
    """Codec, and timestamp, key and value of each record of a batch that a leader would take."""
    outcome = convert(sent, codec)
    assert isinstance(outcome, tuple), outcome
    batch, accepted = outcome
    assert check_produced(batch, max_batch_bytes=MAX_BYTES, payload_kinds=()) == accepted
    [(_, header)] = accepted.batches
    assert crc_matches(batch, 0, header)
    records = list(walk(records_of(batch, header), header.record_count))
    assert [record.offset_delta for record in records] == list(range(len(records)))
    times = [header.base_timestamp_ms + record.timestamp_delta_ms for record in records]
    assert header.max_timestamp_ms == max(times)
    assert all(record.headers == () for record in records)
    rows = [(time, record.key, record.value) for time, record in zip(times, records, strict=True)]
    return header.compression, rows


def refused(sent: bytes, error: ErrorCode, **options) -> str:
    outcome = convert(sent, **options)
    assert isinstance(outcome, RefusedBatch)
    assert outcome.error is error, outcome
    return outcome.message


def message_set(form: int, rows, attributes: int = 0, first: int = 0) -> bytes:
    return b"".join(
        build(form, first + n, time, key, value, attributes) for n, (time, key, value) in enumerate(rows)
    )


def wrapper(form: int, codec: Compression, inner: bytes, offset: int = 0, attributes: int = 0) -> bytes:
    payload = compress(codec, inner)
    if codec is Compression.LZ4 and form == 0:
        payload = bytes(with_checksum_of_format_0(payload))
    return build(form, offset, TIME_MS, None, payload, codec | attributes)


def rows_of(form: int, rows):
    return [(time if form else -1, key, value) for time, key, value in rows]


ROWS = [(TIME_MS + n * 7, b"k%d" % n, b"v" * n) for n in range(5)]
ANY_ROWS = st.lists(
    st.tuples(
        st.integers(-1, 2**62), st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=200)
    ),
    min_size=1,
    max_size=20,
)


@given(st.sampled_from([0, 1]), ANY_ROWS, st.integers(0, 2**40))
def test_messages_keep_times_keys_and_values_whatever_offsets_a_producer_gave_them(form, rows, first) -> None:
    assert converted(message_set(form, rows, first=first)) == (Compression.NONE, rows_of(form, rows))


@settings(deadline=None)
@given(st.sampled_from([0, 1]), st.sampled_from(CODECS), ANY_ROWS)
def test_a_wrapper_keeps_its_codec_and_all_that_is_in_it(form, codec, rows) -> None:
    sent = wrapper(form, codec, message_set(form, rows), offset=len(rows) - 1)
    assert converted(sent) == (codec, rows_of(form, rows))


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("target", Compression)
def test_the_topics_codec_goes_before_that_of_the_producer(form: int, target: Compression) -> None:
    for sent in (message_set(form, ROWS), wrapper(form, Compression.GZIP, message_set(form, ROWS))):
        assert converted(sent, Codec(target)) == (target, rows_of(form, ROWS))


@pytest.mark.parametrize("form", SNAPPY_OF_AIOKAFKA)
def test_bytes_of_another_client_are_taken(form: int) -> None:
    rows = [(TIME_MS, b"k", b"v"), (TIME_MS + 1, None, b"w" * 30)]
    sent = bytes.fromhex(SNAPPY_OF_AIOKAFKA[form])
    assert converted(sent) == (Compression.SNAPPY, rows_of(form, rows))


@pytest.mark.parametrize("form", [0, 1])
def test_lz4_has_the_checksum_of_its_format_and_format_0_takes_the_right_one_too(form: int) -> None:
    payload = compress(Compression.LZ4, message_set(form, ROWS))
    for checksum in (payload, bytes(with_checksum_of_format_0(payload))):
        sent = build(form, 0, TIME_MS, None, checksum, Compression.LZ4)
        if form == 0 or checksum is payload:
            assert converted(sent)[1] == rows_of(form, ROWS)
        else:
            refused(sent, ErrorCode.invalid_record)


def test_many_messages_and_one_larger_than_a_step_are_taken() -> None:
    rows = [(TIME_MS + n, None, b"%d" % n) for n in range(20_000)]
    rows.insert(10_000, (TIME_MS, b"large", bytes(3_000_000)))
    assert converted(wrapper(1, Compression.GZIP, message_set(1, rows)))[1] == rows


def test_times_at_both_ends_of_a_long_are_kept() -> None:
    rows = [(-1, None, b"none"), (2**63 - 1, None, b"the last")]
    outcome = convert(message_set(1, rows))
    assert isinstance(outcome, tuple)
    [(_, header)] = outcome[1].batches
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (-1, 2**63 - 1)
    assert check_produced(outcome[0], max_batch_bytes=MAX_BYTES, payload_kinds=()) == outcome[1]


# Refusals


@pytest.mark.parametrize("form", [0, 1])
def test_a_wrong_crc_is_corruption_outside_and_inside(form: int) -> None:
    for position in (12, 20, 25):
        damaged = bytearray(message_set(form, ROWS))
        damaged[position] ^= 1
        assert "CRC" in refused(bytes(damaged), ErrorCode.corrupt_message)
        inside = wrapper(form, Compression.GZIP, bytes(damaged))
        assert "CRC" in refused(inside, ErrorCode.corrupt_message)


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("codec", [None, *CODECS])
def test_what_is_cut_anywhere_is_refused(form: int, codec: Compression | None) -> None:
    rows = ROWS[:2]
    sent = message_set(form, rows)
    ends = {0, len(message_set(form, rows[:1]))}
    if codec is not None:
        sent, ends = wrapper(form, codec, sent), {0}
    for length in set(range(1, len(sent))) - ends:
        refused(sent[:length], ErrorCode.corrupt_message)
    refused(b"", ErrorCode.invalid_record)


@pytest.mark.parametrize("form", [0, 1])
def test_a_wrapper_whose_last_message_is_cut_is_refused_so_that_none_is_lost(form: int) -> None:
    inner = message_set(form, ROWS)
    for missing in (1, 10, 20):
        cut = wrapper(form, Compression.SNAPPY, inner[:-missing])
        assert "ends within a message" in refused(cut, ErrorCode.invalid_record)


@pytest.mark.parametrize("form", [0, 1])
def test_wrappers_stand_alone_and_hold_plain_messages_of_their_format(form: int) -> None:
    inner, single = message_set(form, ROWS), message_set(form, ROWS[:1])
    one = wrapper(form, Compression.GZIP, inner)
    assert "one of 2" in refused(one + one, ErrorCode.invalid_record)
    assert "one of 2" in refused(single + one, ErrorCode.invalid_record)
    nested = wrapper(form, Compression.GZIP, one)
    assert "inside another" in refused(nested, ErrorCode.invalid_record)
    other = wrapper(form, Compression.GZIP, message_set(1 - form, ROWS))
    assert f"format {1 - form} is inside one of format {form}" in refused(other, ErrorCode.invalid_record)
    mixed = single + message_set(1 - form, ROWS)
    assert f"follows one of format {form}" in refused(mixed, ErrorCode.invalid_record)
    empty = wrapper(form, Compression.GZIP, b"")
    assert "no messages inside" in refused(empty, ErrorCode.invalid_record)
    null = build(form, 0, TIME_MS, None, None, Compression.GZIP)
    assert "has no value" in refused(null, ErrorCode.invalid_record)


@pytest.mark.parametrize("form", [0, 1])
def test_codecs_that_the_formats_do_not_have_are_refused(form: int) -> None:
    zstd = wrapper(form, Compression.ZSTD, message_set(form, ROWS))
    assert "has no zstd" in refused(zstd, ErrorCode.invalid_record)
    unknown = build(form, 0, TIME_MS, None, b"?", 6)
    assert "no codec 6" in refused(unknown, ErrorCode.unsupported_compression_type)
    wrong = build(form, 0, TIME_MS, None, b"this is no gzip", Compression.GZIP)
    assert "cannot be decompressed" in refused(wrong, ErrorCode.invalid_record)


def test_a_wrapper_of_format_1_has_no_offset_below_its_messages() -> None:
    inner = message_set(1, ROWS)
    for offset in (0, 4, 1_000):  # librdkafka writes 0
        assert converted(wrapper(1, Compression.GZIP, inner, offset=offset))[1] == ROWS
    below = wrapper(1, Compression.GZIP, inner, offset=3)
    assert "offset 3, below the last inside it, 4" in refused(below, ErrorCode.invalid_record)
    assert converted(wrapper(0, Compression.GZIP, message_set(0, ROWS), offset=3))[1] == rows_of(0, ROWS)


def test_a_producer_may_not_speak_for_the_leaders_clock() -> None:
    stamped = message_set(1, ROWS, attributes=LOG_APPEND_TIME_BIT)
    refused(stamped, ErrorCode.invalid_timestamp)
    refused(wrapper(1, Compression.GZIP, stamped), ErrorCode.invalid_timestamp)
    plain = wrapper(1, Compression.GZIP, message_set(1, ROWS), attributes=LOG_APPEND_TIME_BIT)
    refused(plain, ErrorCode.invalid_timestamp)
    assert converted(
        message_set(0, ROWS, attributes=LOG_APPEND_TIME_BIT)
    )  # a bit that format 0 does not have


def test_a_time_before_1970_is_refused_but_for_none() -> None:
    assert "timestamp -2" in refused(message_set(1, [(-2, None, b"v")]), ErrorCode.invalid_timestamp)


def test_neither_a_message_nor_the_batch_may_be_larger_than_the_topic_allows() -> None:
    large = message_set(1, [(TIME_MS, None, bytes(1_000))])
    too_large = refused(large, ErrorCode.message_too_large, max_batch_bytes=1_000)
    assert "a message of 1034 bytes is larger than max.message.bytes=1000" in too_large
    many = message_set(1, [(TIME_MS, None, bytes(100))] * 20)
    assert "make a batch larger" in refused(many, ErrorCode.message_too_large, max_batch_bytes=1_000)
    packed = wrapper(1, Compression.GZIP, many)
    assert isinstance(convert(packed, max_batch_bytes=1_000), tuple)
    unpacked = {"codec": Codec(Compression.NONE), "max_batch_bytes": 1_000}
    assert "make a batch larger" in refused(packed, ErrorCode.message_too_large, **unpacked)


def test_a_size_inside_is_not_believed_before_its_bytes_are_there() -> None:
    inner = struct.pack(">qi", 0, 2**31 - 1) + bytes(100)
    assert "ends within" in refused(wrapper(0, Compression.GZIP, inner), ErrorCode.invalid_record)


def test_a_bomb_is_given_up_in_time() -> None:
    """64 MB of messages in 70 KB."""
    inner = message_set(0, [(-1, None, bytes(1 << 19))] * 128)
    bomb = wrapper(0, Compression.GZIP, inner)
    del inner
    tracemalloc.start()
    try:
        refused(bomb, ErrorCode.message_too_large, codec=Codec(Compression.NONE))
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
