import numpy as np
import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.arrow_payload import ArrowPayload, payload_pieces
from sparklog.records.envelope import (
    ARROW_BIT,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    Compression,
    build_envelope,
    crc_matches,
    parse_header,
    stamp,
)
from sparklog.records.filtering.filter import restamped
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.kafka.kafka_payload import KafkaRecords
from sparklog.records.payload import payload_of
from sparklog.records.row_columns import HEADERS_TYPE, normalise
from sparklog.records.transcode import arrow_to_records
from tests.records.to_arrow import records_to_arrow

NOW_MS = 1_700_000_000_123

nullable_bytes = st.none() | st.binary(max_size=60)
records = st.builds(
    Record,
    key=nullable_bytes,
    value=nullable_bytes,
    timestamp_ms=st.integers(-(2**40), 2**45),
    headers=st.lists(st.tuples(st.text(max_size=5), nullable_bytes), max_size=3),
)


@settings(deadline=None, max_examples=60)
@given(
    some=st.lists(records, min_size=1, max_size=50),
    codec=st.sampled_from([Compression.NONE, Compression.LZ4, Compression.ZSTD]),
    base_offset=st.integers(0, 2**50),
)
def test_there_and_back_is_the_same_batch(some: list[Record], codec: Compression, base_offset: int):
    batch = bytearray(
        build_records_batch(
            some, now_ms=0, producer_id=7, producer_epoch=1, base_sequence=2**31 - 5, is_transactional=True
        )
    )
    stamp(batch, 0, base_offset, 12)
    arrow = records_to_arrow(batch, compression=codec)
    assert crc_matches(arrow, 0, parse_header(arrow))
    assert arrow_to_records(arrow) == batch
    assert rows(arrow).equals(rows(batch))


def rows(batch: bytes | bytearray) -> pa.RecordBatch:
    header = parse_header(batch)
    return payload_of(header).to_columns(batch, header)


def test_a_kafka_client_reads_what_was_arrow_at_the_same_offsets():
    columns = pa.record_batch(
        {
            "key": pa.array([None, b"k"]),
            "value": pa.array([b"v", None]),
            "headers": pa.array([[], [("h", None), ("h", b"x")]], HEADERS_TYPE),
        }
    )
    batch = bytearray(
        ArrowPayload().from_columns(
            columns,
            now_ms=NOW_MS,
            compression=Compression.LZ4,
            producer_id=9,
            producer_epoch=3,
            base_sequence=17,
            is_transactional=True,
        )
    )
    stamp(batch, 0, 1_000, 42)
    transcoded = arrow_to_records(batch)
    before, after = parse_header(batch), parse_header(transcoded)
    assert crc_matches(transcoded, 0, after)
    assert after.attributes == TRANSACTIONAL_BIT
    for name in (
        "base_offset",
        "leader_epoch",
        "last_offset_delta",
        "base_timestamp_ms",
        "max_timestamp_ms",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "record_count",
    ):
        assert getattr(after, name) == getattr(before, name), name
    assert [
        (record.offset, record.timestamp, record.key, record.value, record.headers)
        for record in DefaultRecordBatch(transcoded)
    ] == [(1_000, NOW_MS, None, b"v", []), (1_001, NOW_MS, b"k", None, [("h", None), ("h", b"x")])]


@pytest.mark.parametrize("timestamps", [None, [5, 5, 9]])
def test_gaps_stay_where_compaction_left_them(timestamps: list[int] | None):
    columns = {"value": pa.array([b"a", b"b", b"c"])}
    if timestamps:
        columns["timestamp"] = pa.array(timestamps)
    pieces = payload_pieces(
        normalise(pa.record_batch(columns), 5), 5, Compression.NONE, np.array([2, 7, 100])
    )
    arrow = build_envelope(
        pieces,
        attributes=ARROW_BIT,
        record_count=3,
        last_offset_delta=120,
        base_timestamp_ms=5,
        max_timestamp_ms=9,
        base_offset=50,
    )
    transcoded = arrow_to_records(arrow)
    assert rows(transcoded).column("offset").to_pylist() == [52, 57, 150]
    assert parse_header(transcoded).last_offset == 170
    assert records_to_arrow(transcoded) == arrow


def test_log_append_time_stays():
    payload = build_records_batch([Record(value=b"v", timestamp_ms=1)] * 2, now_ms=0)[61:]
    batch = build_envelope(
        payload,
        attributes=LOG_APPEND_TIME_BIT,
        record_count=2,
        last_offset_delta=1,
        base_timestamp_ms=1,
        max_timestamp_ms=777,
    )
    arrow = records_to_arrow(batch)
    assert parse_header(arrow).is_log_append_time
    assert rows(arrow).equals(rows(batch))
    assert rows(arrow_to_records(arrow)).equals(rows(batch))


def test_an_empty_batch_that_compaction_left_can_be_transcoded():
    empty = build_envelope(
        b"",
        attributes=0,
        record_count=0,
        last_offset_delta=7,
        base_timestamp_ms=3,
        max_timestamp_ms=4,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
    )
    assert KafkaRecords().to_columns(empty, parse_header(empty)).num_rows == 0
    assert arrow_to_records(records_to_arrow(empty)) == empty


def test_the_wrong_kind_of_batch_is_refused():
    batch = build_records_batch([Record(value=b"v")], now_ms=0)
    with pytest.raises(CorruptBatch, match="no arrow payload"):
        arrow_to_records(batch)


def test_a_damaged_arrow_batch_is_refused():
    batch = bytearray(records_to_arrow(build_records_batch([Record(value=b"v" * 50)], now_ms=0)))
    batch[-20] ^= 1
    with pytest.raises(CorruptBatch, match="CRC"):
        arrow_to_records(batch)


def test_a_delete_horizon_is_not_sent_on_and_timestamps_stay():
    batch = ArrowPayload().from_columns(
        pa.record_batch(
            {"key": [b"a", b"b"], "value": pa.array([None, b"v"], pa.binary()), "timestamp": [5, 9]}
        ),
        now_ms=0,
    )
    compacted = restamped(batch, parse_header(batch), 1_000_000)
    transcoded = arrow_to_records(compacted)
    assert not parse_header(transcoded).attributes & DELETE_HORIZON_BIT
    assert rows(transcoded).equals(rows(batch))
    assert rows(compacted).equals(rows(batch))


@pytest.mark.bug("B65", "records", "A rotten batch gets a valid CRC.")
def test_no_rotten_batch_is_given_a_right_crc() -> None:
    """The CRCs within the payload protect nothing of the envelope: where the batch ends, and when it was."""
    columns = pa.table({"value": pa.array([b"a", b"b"], pa.binary())})
    batch = ArrowPayload().from_columns(
        columns, now_ms=NOW_MS, producer_id=7, producer_epoch=0, base_sequence=3
    )
    assert crc_matches(arrow_to_records(batch), 0, parse_header(arrow_to_records(batch)))
    for at in range(17, len(batch)):
        for bit in range(8):
            rotten = bytearray(batch)
            rotten[at] ^= 1 << bit
            with pytest.raises(CorruptBatch):
                arrow_to_records(rotten)
