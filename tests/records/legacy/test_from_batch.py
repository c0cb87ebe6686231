"""Batches as the messages that readers of formats 0 and 1 know."""

import numpy as np
import pyarrow as pa
import pytest
from aiokafka.record.legacy_records import LegacyRecordBatch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.arrow_payload import ArrowPayload
from sparklog.records.codecs import compress, decompress
from sparklog.records.envelope import (
    CONTROL_BIT,
    ENVELOPE_BYTES,
    Compression,
    build_envelope,
    parse_header,
    stamp,
)
from sparklog.records.filtering.filter import decode, emptied
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.legacy.from_batch import NOTHING, is_convertible, messages_of_batch
from sparklog.records.legacy.lz4_header import with_checksum_of_format_0, with_right_checksum
from sparklog.records.legacy.message import messages_of
from sparklog.records.legacy.to_batch import batch_of_messages
from sparklog.records.restamp import set_append_time

TIME_MS = 1_500_000_000_000
CODECS = [Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4]
BASE_OFFSET = 1_000


def batch_of(rows, codec: Compression = Compression.NONE, base_offset: int = BASE_OFFSET) -> bytearray:
    """A stored batch of timestamp, key and value; compressed even where that makes it larger."""
    records = [Record(key, value, time, [("header", b"lost")]) for time, key, value in rows]
    plain = build_records_batch(records, now_ms=0)
    header = parse_header(plain)
    batch = bytearray(
        build_envelope(
            compress(codec, plain[ENVELOPE_BYTES:]),
            attributes=codec,
            record_count=header.record_count,
            last_offset_delta=header.last_offset_delta,
            base_timestamp_ms=header.base_timestamp_ms,
            max_timestamp_ms=header.max_timestamp_ms,
        )
    )
    stamp(batch, 0, base_offset, 3)
    return batch


def down(batch, form: int, from_offset: int = 0, bytes_max: int = 1 << 30, at_least_one: bool = True):
    return messages_of_batch(
        batch, form, from_offset=from_offset, bytes_max=bytes_max, at_least_one=at_least_one
    )


def opened(data: bytes):
    """Offset, timestamp, key and value of each message, wrappers opened as their readers do."""
    found = []
    for message in messages_of(memoryview(data)):
        if not message.codec:
            found.append((message.offset, message.timestamp_ms, message.key, message.value))
            continue
        codec = Compression(message.codec)
        payload = message.value
        if codec is Compression.LZ4 and message.format == 0:
            assert with_checksum_of_format_0(with_right_checksum(payload)) == payload
            payload = with_right_checksum(payload)
        inner = list(messages_of(memoryview(decompress(codec, payload))))
        first = message.offset - inner[-1].offset if message.format else 0
        assert message.format == 0 or inner[0].offset == 0
        found += [(first + one.offset, one.timestamp_ms, one.key, one.value) for one in inner]
    return found


ROWS = [(TIME_MS + n * 7, b"k%d" % n, b"v" * n) for n in range(5)]
ANY_ROWS = st.lists(
    st.tuples(
        st.integers(-1, 2**62), st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=200)
    ),
    min_size=1,
    max_size=20,
)


def numbered(form: int, rows, first: int = BASE_OFFSET):
    return [(first + n, time if form else -1, key, value) for n, (time, key, value) in enumerate(rows)]


@settings(deadline=None)
@given(st.sampled_from([0, 1]), st.sampled_from(CODECS), ANY_ROWS, st.integers(0, 2**40))
def test_records_keep_offsets_times_keys_and_values(form, codec, rows, base_offset) -> None:
    messages = down(batch_of(rows, codec, base_offset), form)
    assert (messages.record_count, messages.is_whole) == (len(rows), True)
    assert opened(messages.data) == numbered(form, rows, base_offset)


@settings(deadline=None)
@given(st.sampled_from([0, 1]), st.sampled_from(CODECS), ANY_ROWS)
def test_there_and_back_again(form, codec, rows) -> None:
    sent = down(batch_of(rows, codec, base_offset=0), form).data
    outcome = batch_of_messages(memoryview(sent), None, max_batch_bytes=1 << 20)
    assert isinstance(outcome, tuple)
    batch, _ = outcome
    assert parse_header(batch).compression is codec
    assert down(batch, form).data == sent


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP, Compression.SNAPPY])
def test_other_clients_read_the_messages(form: int, codec: Compression) -> None:
    data = down(batch_of(ROWS, codec), form).data
    found = []
    position = 0
    while position < len(data):
        end = position + 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        legacy = LegacyRecordBatch(data[position:end], form)
        assert legacy.validate_crc()
        found += [(one.offset, one.timestamp, one.key, one.value) for one in legacy]
        position = end
    assert found == [
        (offset, time if form else None, key, value) for offset, time, key, value in numbered(form, ROWS)
    ]


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_a_reader_that_begins_within_a_batch_gets_the_rest(form: int, codec: Compression) -> None:
    batch = batch_of(ROWS, codec)
    messages = down(batch, form, from_offset=BASE_OFFSET + 3)
    assert opened(messages.data) == numbered(form, ROWS)[3:]
    assert messages.record_count == 2
    assert down(batch, form, from_offset=BASE_OFFSET + 5) == NOTHING


@pytest.mark.parametrize("form", [0, 1])
def test_the_leaders_time_is_that_of_every_message(form: int) -> None:
    for codec in CODECS:
        batch = batch_of(ROWS, codec)
        set_append_time(batch, 0, TIME_MS + 999)
        data = down(batch, form).data
        assert {time for _, time, _, _ in opened(data)} == {TIME_MS + 999 if form else -1}
        assert all(message.is_log_append_time is (form == 1) for message in messages_of(memoryview(data)))


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_gaps_that_compaction_left_stay(form: int, codec: Compression) -> None:
    whole = batch_of(ROWS, codec)
    kept = [b"k1", b"k4"]
    compacted = decode(whole, (0, parse_header(whole))).rebuild(0, np.array([1, 4]))
    data = down(compacted, form).data
    assert opened(data) == [row for row in numbered(form, ROWS) if row[2] in kept]


def test_an_arrow_batch_has_messages_and_its_headers_are_dropped() -> None:
    header = pa.array([[{"key": "h", "value": b"1"}], None])
    table = pa.table({"key": pa.array([b"k", None]), "value": pa.array([None, b"w"]), "headers": header})
    batch = bytearray(ArrowPayload().from_columns(table, now_ms=TIME_MS))
    stamp(batch, 0, BASE_OFFSET, 0)
    messages = down(batch, 1)
    assert opened(messages.data) == [
        (BASE_OFFSET, TIME_MS, b"k", None),
        (BASE_OFFSET + 1, TIME_MS, None, b"w"),
    ]


def test_control_batches_and_empty_ones_have_no_messages() -> None:
    batch = batch_of(ROWS)
    control = build_envelope(
        batch[ENVELOPE_BYTES:],
        attributes=CONTROL_BIT,
        record_count=5,
        last_offset_delta=4,
        base_timestamp_ms=0,
        max_timestamp_ms=0,
    )
    assert down(control, 0) == down(emptied(parse_header(batch)), 1) == NOTHING


@pytest.mark.parametrize("form", [0, 1])
def test_plain_messages_end_where_the_reader_takes_no_more(form: int) -> None:
    batch = batch_of([(TIME_MS, None, bytes(100))] * 10)
    size = len(down(batch, form, from_offset=BASE_OFFSET + 9).data)
    for limit, count in ((3 * size, 3), (3 * size - 1, 2), (1, 1)):
        messages = down(batch, form, bytes_max=limit)
        assert (messages.record_count, len(messages.data), messages.is_whole) == (count, count * size, False)
    assert down(batch, form, bytes_max=10 * size).is_whole
    assert down(batch, form, bytes_max=size - 1, at_least_one=False).data == b""


def test_a_wrapper_is_given_whole_or_not_at_all() -> None:
    batch = batch_of(ROWS, Compression.GZIP)
    assert down(batch, 1, bytes_max=1).record_count == 5
    refused = down(batch, 1, bytes_max=1, at_least_one=False)
    assert (refused.data, refused.is_whole) == (b"", False)


def test_zstd_has_no_old_format() -> None:
    assert [is_convertible(parse_header(batch_of(ROWS, codec))) for codec in Compression] == [
        True, True, True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize("codec", CODECS)
def test_a_damaged_batch_is_given_to_nobody(codec: Compression) -> None:
    batch = batch_of(ROWS, codec)
    batch[-1] ^= 1
    with pytest.raises(CorruptBatch, match="does not match its CRC"):
        down(batch, 1)
