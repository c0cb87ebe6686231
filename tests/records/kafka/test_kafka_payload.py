import struct
import tracemalloc
from collections.abc import Sequence

import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import (
    LOG_APPEND_TIME_BIT,
    Compression,
    build_envelope,
    parse_header,
)
from sparklog.records.kafka import encode, kafka_payload
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.kafka.kafka_payload import KafkaRecords
from sparklog.records.kafka.spans import CHUNK_RECORDS
from sparklog.records.kafka.walk import HEADERS_PER_RECORD_MAX, walk
from sparklog.records.row_columns import ROW_SCHEMA

NOW_MS = 1_700_000_000_123
PAYLOAD = KafkaRecords()

nullable_bytes = st.none() | st.binary(max_size=200)
records = st.builds(
    Record,
    key=nullable_bytes,
    value=nullable_bytes,
    timestamp_ms=st.none() | st.integers(-(2**40), 2**45),
    headers=st.lists(st.tuples(st.text(max_size=5), nullable_bytes), max_size=4),
)


def many(some: Sequence[Record], count: int) -> list[Record]:
    """Enough records that numpy decodes them."""
    return [some[nth % len(some)] for nth in range(count)]


def rows_of(batch: bytes) -> list[dict]:
    return PAYLOAD.to_columns(batch, parse_header(batch)).to_pylist()


def expected_rows(some: Sequence[Record]) -> list[tuple]:
    return [
        (
            nth,
            record.key,
            record.value,
            NOW_MS if record.timestamp_ms is None else record.timestamp_ms,
            [{"key": key, "value": value} for key, value in record.headers] or None,
        )
        for nth, record in enumerate(some)
    ]


def seen_rows(batch: bytes) -> list[tuple]:
    columns = PAYLOAD.to_columns(batch, parse_header(batch))
    assert columns.schema.equals(ROW_SCHEMA)
    columns.validate(full=True)
    stamps = columns.column("timestamp").cast(pa.int64()).to_pylist()
    return [
        (row["offset"], row["key"], row["value"], stamp // 1_000, row["headers"])
        for row, stamp in zip(columns.drop_columns(["timestamp"]).to_pylist(), stamps, strict=True)
    ]


@pytest.mark.scenario("S19")
@settings(deadline=None, max_examples=60)
@given(
    some=st.lists(records, min_size=1, max_size=12),
    compression=st.sampled_from(Compression),
    count=st.sampled_from([1, kafka_payload.SMALL_RECORD_COUNT - 1, kafka_payload.SMALL_RECORD_COUNT, 150]),
)
def test_what_was_written_is_read_in_every_codec(some: list[Record], compression: Compression, count: int):
    written = many(some, count)
    batch = build_records_batch(written, now_ms=NOW_MS, compression=compression)
    PAYLOAD.validate(batch, parse_header(batch))
    assert seen_rows(batch) == expected_rows(written)


@settings(deadline=None, max_examples=40)
@given(some=st.lists(records, min_size=1, max_size=8), compression=st.sampled_from(Compression))
def test_columns_written_again_are_the_same_batch(some: list[Record], compression: Compression):
    batch = build_records_batch(many(some, 50), now_ms=NOW_MS, compression=compression)
    columns = PAYLOAD.to_columns(batch, parse_header(batch))
    assert PAYLOAD.from_columns(columns, now_ms=1, compression=compression) == batch


@settings(deadline=None, max_examples=40)
@given(
    some=st.lists(records, min_size=1, max_size=8),
    codec=st.sampled_from([Compression.NONE, Compression.GZIP, Compression.LZ4, Compression.ZSTD]),
)
def test_kafka_python_and_aiokafka_read_what_we_write(some: list[Record], codec: Compression):
    batch = build_records_batch(some, now_ms=NOW_MS, compression=codec, producer_id=5, producer_epoch=1)
    reader = MemoryRecords(batch).next_batch()
    assert reader.validate_crc()
    assert (reader.producer_id, reader.producer_epoch) == (5, 1)
    theirs = list(reader)
    compiled = DefaultRecordBatch(batch)
    assert compiled.validate_crc()
    for read in (theirs, list(compiled)):
        assert [
            (
                one.offset,
                one.key,
                one.value,
                [{"key": key, "value": value} for key, value in one.headers] or None,
            )
            for one in read
        ] == [(offset, key, value, headers) for offset, key, value, _, headers in expected_rows(some)]
    assert [one.timestamp for one in theirs] == [stamp for _, _, _, stamp, _ in expected_rows(some)]


@settings(deadline=None, max_examples=30)
@given(some=st.lists(records, min_size=1, max_size=60), codec=st.sampled_from([0, 1, 3]))
def test_we_read_what_kafka_python_writes(some: list[Record], codec: int):
    builder = KafkaPythonBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
    for nth, record in enumerate(some):
        stamp = NOW_MS if record.timestamp_ms is None else record.timestamp_ms
        builder.append(nth, stamp, record.key, record.value, list(record.headers))
    assert seen_rows(bytes(builder.build())) == expected_rows(some)


def test_no_value_an_empty_value_and_no_headers_are_told_apart():
    some = [
        Record(None, b""),
        Record(b"", None),
        Record(b"k", b"v", headers=[("h", None), ("h", b""), ("h", b"")]),
    ]
    for count in (3, 99):
        batch = build_records_batch(many(some, count), now_ms=NOW_MS)
        rows = rows_of(batch)
        assert [(row["key"], row["value"], row["headers"]) for row in rows[:3]] == [
            (None, b"", None),
            (b"", None, None),
            (
                b"k",
                b"v",
                [{"key": "h", "value": None}, {"key": "h", "value": b""}, {"key": "h", "value": b""}],
            ),
        ]


def test_a_first_timestamp_of_minus_one_moves_no_other():
    batch = build_records_batch([Record(timestamp_ms=stamp) for stamp in (-1, 5, -1)], now_ms=NOW_MS)
    assert [row[3] for row in seen_rows(batch)] == [-1, 5, -1]
    assert (parse_header(batch).base_timestamp_ms, parse_header(batch).max_timestamp_ms) == (-1, 5)


def test_an_extreme_timestamp_is_clamped_to_what_microseconds_can_say():
    batch = build_records_batch([Record(timestamp_ms=2**62)] * 100, now_ms=NOW_MS)
    assert {row[3] for row in seen_rows(batch)} == {(2**63 - 1) // 1_000}


@pytest.mark.parametrize("count", [3, 100])
def test_log_append_time_is_the_time_of_every_record(count: int):
    payload = build_records_batch([Record(value=b"x", timestamp_ms=1)] * count, now_ms=NOW_MS)[61:]
    batch = build_envelope(
        payload,
        attributes=LOG_APPEND_TIME_BIT,
        record_count=count,
        last_offset_delta=count - 1,
        base_timestamp_ms=1,
        max_timestamp_ms=777,
        base_offset=1_000,
    )
    assert [(row[0], row[3]) for row in seen_rows(batch)] == [(1_000 + nth, 777) for nth in range(count)]
    assert {row["timestamp_type"] for row in rows_of(batch)} == {1}


def test_header_keys_that_are_not_text_are_read_like_in_java():
    for count in (1, 60):
        batch = build_records_batch([Record(headers=[("AB", b"x")])] * count, now_ms=NOW_MS)
        foreign = rebuilt(batch[61:].replace(b"\x04AB", b"\x04\xffB"), count)
        assert rows_of(foreign)[0]["headers"] == [{"key": "�B", "value": b"x"}]


def test_one_record_may_have_many_more_headers_than_the_others():
    some = [Record(value=b"v", headers=[("a", b"%d" % nth)] * (nth % 3)) for nth in range(200)]
    some[70] = Record(headers=[(f"h{nth}", b"x") for nth in range(500)])
    batch = build_records_batch(some, now_ms=NOW_MS)
    assert seen_rows(batch) == expected_rows(some)


def test_more_records_than_a_chunk_are_one_batch_of_columns():
    count = CHUNK_RECORDS + 17
    batch = build_records_batch([Record(value=b"v")] * count, now_ms=NOW_MS)
    PAYLOAD.validate(batch, parse_header(batch))
    columns = PAYLOAD.to_columns(batch, parse_header(batch))
    assert columns.column("offset").to_pylist() == list(range(count))


def rebuilt(payload: bytes, count: int, last_offset_delta: int | None = None) -> bytes:
    return build_envelope(
        payload,
        attributes=0,
        record_count=count,
        last_offset_delta=count - 1 if last_offset_delta is None else last_offset_delta,
        base_timestamp_ms=NOW_MS,
        max_timestamp_ms=NOW_MS,
    )


def refuse(batch: bytes) -> None:
    header = parse_header(batch)
    with pytest.raises(CorruptBatch):
        PAYLOAD.validate(batch, header)
    with pytest.raises(CorruptBatch):
        PAYLOAD.to_columns(batch, header)


@pytest.mark.parametrize("count", [10, 100])
def test_gaps_are_fine_but_offsets_must_grow_within_the_batch(count: int):
    payload = build_records_batch([Record(value=b"v")] * count, now_ms=NOW_MS)[61:]
    PAYLOAD.validate(rebuilt(payload, count, 1_000), parse_header(rebuilt(payload, count, 1_000)))
    refuse(rebuilt(payload, count, count - 2))
    record = payload[: payload[0] // 2 + 1]
    refuse(rebuilt(record * count, count))


@pytest.mark.parametrize("count", [10, 100])
def test_a_wrong_count_is_refused(count: int):
    payload = build_records_batch([Record(value=b"v")] * count, now_ms=NOW_MS)[61:]
    for claimed in (0, count - 1, count + 1, 2**31 - 1):
        refuse(rebuilt(payload, claimed, 2**31 - 1))


@pytest.mark.parametrize("count", [10, 100])
def test_an_empty_batch_that_compaction_left_has_no_rows(count: int):
    empty = rebuilt(b"", 0, count)
    PAYLOAD.validate(empty, parse_header(empty))
    assert PAYLOAD.to_columns(empty, parse_header(empty)).num_rows == 0


def varint(number: int) -> bytes:
    raw, out = (number << 1) ^ (number >> 63), bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes(out) + bytes([raw])


def record(offset_delta: int, *, key_length: int = -1, header_count: int = 0, tail: bytes = b"") -> bytes:
    body = b"\0" + varint(0) + varint(offset_delta) + varint(key_length) + varint(-1)
    body += varint(header_count) + tail
    return varint(len(body)) + body


@pytest.mark.parametrize("count", [5, 100])
@pytest.mark.parametrize(
    "hostile",
    [
        record(3, key_length=2**31 - 1),
        record(3, key_length=2**34),
        record(3, header_count=2**31 - 1),
        record(3, header_count=-1),
        record(3, header_count=1, tail=varint(-1) + varint(-1)),
        record(3, header_count=1, tail=varint(2**31) + varint(-1)),
        record(3, tail=b"surplus"),
        varint(-5) + b"12345",
        varint(2**31 - 1) + b"12345",
        b"\xff" * 12,
        b"\x14" + b"\xff" * 10,
        b"\x80",
        b"",
    ],
    ids=repr,
)
def test_lengths_and_counts_that_lie_are_refused(hostile: bytes, count: int):
    others = [record(nth) for nth in range(count)]
    for place in (0, 3, count - 1):
        refuse(rebuilt(b"".join([*others[:place], hostile, *others[place + 1 :]]), count))


def test_a_batch_of_claims_takes_no_memory():
    payload = b"\x00" * 2_000_000
    batch = rebuilt(payload, 280_000)
    tracemalloc.start()
    try:
        refuse(batch)
        refuse(rebuilt(record(0, header_count=900_000, tail=payload), 1))
        too_many = HEADERS_PER_RECORD_MAX + 1
        refuse(rebuilt(record(0, header_count=too_many, tail=b"\0\1" * too_many) + record(1) * 40, 41))
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()


@settings(deadline=None, max_examples=150)
@given(
    count=st.sampled_from([4, 64]),
    edits=st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_records_are_refused_or_read_alike_by_both_decoders(count: int, edits: list[tuple[int, int]]):
    some = [Record(b"key", b"value" * (nth % 5), nth, [("h", b"x"), ("i", None)]) for nth in range(count)]
    payload = bytearray(build_records_batch(some, now_ms=NOW_MS)[61:])
    for position, byte in edits:
        payload[position % len(payload)] = byte
    batch = rebuilt(bytes(payload), count)
    outcomes = [outcome(batch, threshold) for threshold in (1, 1_000_000)]
    assert outcomes[0] == outcomes[1]


def outcome(batch: bytes, small_record_count: int) -> list[tuple] | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka_payload, "SMALL_RECORD_COUNT", small_record_count)
        try:
            PAYLOAD.validate(batch, parse_header(batch))
        except CorruptBatch:
            with pytest.raises(CorruptBatch):
                PAYLOAD.to_columns(batch, parse_header(batch))
            return None
        return seen_rows(batch)


@settings(deadline=None, max_examples=200)
@given(payload=st.binary(max_size=400), count=st.integers(0, 60))
def test_random_bytes_raise_nothing_but_corrupt_batch(payload: bytes, count: int):
    batch = rebuilt(payload, count, 100)
    assert outcome(batch, 1) == outcome(batch, 1_000)


def test_a_batch_that_is_not_all_there_is_refused():
    batch = build_records_batch([Record(value=b"v")], now_ms=NOW_MS)
    with pytest.raises(CorruptBatch, match="less than the batch's"):
        PAYLOAD.to_columns(batch[:-1], parse_header(batch))


def test_what_follows_a_batch_is_not_read():
    batch = build_records_batch([Record(value=b"v")], now_ms=NOW_MS)
    assert PAYLOAD.to_columns(batch + b"more", parse_header(batch)).num_rows == 1


def test_producer_and_transaction_are_in_the_envelope():
    batch = build_records_batch(
        [Record(value=b"v")] * 3,
        now_ms=NOW_MS,
        producer_id=7,
        producer_epoch=2,
        base_sequence=40,
        is_transactional=True,
    )
    header = parse_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert header.is_transactional
    assert header.last_sequence == 42
    assert (header.base_offset, header.leader_epoch) == (0, -1)


def test_no_records_are_no_batch():
    with pytest.raises(ValueError, match="no records"):
        build_records_batch([], now_ms=NOW_MS)


def test_a_payload_that_does_not_shrink_stays_uncompressed():
    header = parse_header(build_records_batch([Record(value=b"v")], now_ms=0, compression=Compression.ZSTD))
    assert header.compression is Compression.NONE


def test_walking_sees_every_field():
    payload = build_records_batch([Record(b"k", None, 5, [("a", None)])], now_ms=0)[61:]
    assert list(walk(payload, 1)) == [(0, 0, b"k", None, ((b"a", None),))]
    assert struct.unpack_from("b", payload, 1) == (0,)


@settings(deadline=None, max_examples=100)
@given(some=st.lists(records, min_size=1, max_size=6))
def test_a_few_records_are_encoded_as_the_builder_encodes_many(some: list[Record]):
    first_ms = some[0].timestamp_ms or 0
    rows = [
        (nth, (record.timestamp_ms or 0) - first_ms, record.key, record.value, list(record.headers))
        for nth, record in enumerate(some)
    ]
    assert encode._encode_few(rows) == encode._encode_many(rows)
