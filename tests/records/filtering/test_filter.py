"""Batches with fewer records: the rows that stay are as they were, in both kinds of payload."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.arrow_payload import ArrowPayload
from sparklog.records.envelope import (
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    Compression,
    build_envelope,
    crc_matches,
    parse_header,
    split,
)
from sparklog.records.filtering.filter import decode, decode_runs, emptied, restamped
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.kafka.kafka_payload import KafkaRecords
from sparklog.records.payload import payload_of

Row = tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]
KINDS = [
    *(("records", codec) for codec in Compression),
    ("arrow", Compression.NONE),
    ("arrow", Compression.LZ4),
    ("arrow", Compression.ZSTD),
]

rows_strategy = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=300),
        st.integers(0, 2**41),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=2),
    ),
    min_size=1,
    max_size=80,
)


def make(kind: str, codec: Compression, rows: Sequence[Row], base_offset: int = 0) -> bytes:
    columns = pa.table(
        {
            "key": pa.array([row[0] for row in rows], pa.binary()),
            "value": pa.array([row[1] for row in rows], pa.binary()),
            "timestamp": pa.array([row[2] for row in rows], pa.int64()),
            "headers": pa.array(
                [[{"key": name, "value": value} for name, value in row[3]] or None for row in rows],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
        }
    )
    payload = ArrowPayload() if kind == "arrow" else KafkaRecords()
    batch = bytearray(
        payload.from_columns(
            columns, now_ms=0, compression=codec, producer_id=9, producer_epoch=2, base_sequence=5
        )
    )
    batch[:8] = base_offset.to_bytes(8, "big")
    batch[12:16] = (7).to_bytes(4, "big")
    return bytes(batch)


def read(batch: bytes) -> list[dict[str, object]]:
    header = parse_header(batch)
    assert crc_matches(batch, 0, header)
    payload_of(header).validate(batch, header)
    return payload_of(header).to_columns(batch, header).to_pylist()


@pytest.mark.parametrize(("kind", "codec"), KINDS)
@settings(max_examples=30, deadline=None)
@given(rows=rows_strategy, data=st.data())
def test_the_rows_that_stay_are_as_they_were(kind: str, codec: Compression, rows: list[Row], data):
    batch = make(kind, codec, rows, base_offset=1_000)
    header = parse_header(batch)
    kept = sorted(data.draw(st.sets(st.sampled_from(range(len(rows))), min_size=1)))
    horizon_ms = data.draw(st.none() | st.integers(0, 2**41))
    before = read(batch)
    after = decode(batch, (0, header)).rebuild(0, np.array(kept), horizon_ms)
    assert read(after) == [before[row] for row in kept]
    rebuilt = parse_header(after)
    assert (rebuilt.base_offset, rebuilt.last_offset, rebuilt.leader_epoch) == (
        1_000,
        header.last_offset,
        7,
    )
    assert (rebuilt.producer_id, rebuilt.producer_epoch) == (9, 2)
    assert (rebuilt.base_sequence, rebuilt.last_sequence) == (5, header.last_sequence)
    assert (rebuilt.is_arrow, rebuilt.max_timestamp_ms) == (
        kind == "arrow",
        max(rows[row][2] for row in kept),
    )
    if horizon_ms is not None:
        assert rebuilt.attributes & DELETE_HORIZON_BIT
        assert rebuilt.base_timestamp_ms == horizon_ms
    again = decode(after, (0, rebuilt)).rebuild(0, np.arange(len(kept)))
    assert read(again) == read(after)


def test_batches_that_follow_each_other_are_told_of_together():
    kinds = [("records", Compression.NONE)] * 3 + [("arrow", Compression.NONE)] + KINDS[:2]
    batches = [
        make(kind, codec, [(b"k%d" % nth, None if nth % 2 else b"v", 5, [])] * (nth + 1), 100 * nth)
        for nth, (kind, codec) in enumerate(kinds)
    ]
    buffer = b"".join(batches)
    runs = list(decode_runs(buffer, split(buffer)))
    assert [len(run.batches) for run in runs] == [3, 1, 1, 1]
    assert runs[0].first_rows.tolist() == [0, 1, 3, 6]
    assert runs[0].offsets.tolist() == [0, 100, 101, 200, 201, 202]
    assert runs[0].is_tombstone.tolist() == [False, True, True, False, False, False]
    assert [key for run in runs for key in run.keys.to_pylist()] == [
        b"k%d" % nth for nth in range(6) for _ in range(nth + 1)
    ]
    assert read(runs[0].rebuild(1, np.array([2]))) == read(batches[1])[1:]
    assert read(runs[0].rebuild(2, np.array([3, 5]))) == [read(batches[2])[0], read(batches[2])[2]]


def test_a_batch_between_that_is_left_out_ends_a_run():
    batches = [make("records", Compression.NONE, [(b"k", b"v", 1, [])], 10 * nth) for nth in range(3)]
    buffer = b"".join(batches)
    found = split(buffer)
    runs = list(decode_runs(buffer, [found[0], found[2]]))
    assert [run.offsets.tolist() for run in runs] == [[0], [20]]


def test_an_emptied_batch_tells_offsets_and_sequences_only():
    batch = make("arrow", Compression.ZSTD, [(b"k", b"v", 3, [])] * 4, base_offset=50)
    empty = emptied(parse_header(batch))
    header = parse_header(empty)
    assert len(empty) == 61
    assert read(empty) == []
    assert (header.base_offset, header.last_offset, header.record_count) == (50, 53, 0)
    assert (header.producer_id, header.base_sequence, header.last_sequence) == (9, 5, 8)
    assert not header.is_arrow


def test_log_append_time_and_the_transactional_bit_stay():
    payload = build_records_batch([Record(b"k", b"v", 1), Record(b"k", None, 9)], now_ms=0)[61:]
    batch = build_envelope(
        payload,
        attributes=LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT,
        record_count=2,
        last_offset_delta=1,
        base_timestamp_ms=1,
        max_timestamp_ms=777,
    )
    after = restamped(batch, parse_header(batch), 5_000)
    assert read(after) == read(batch)
    header = parse_header(after)
    assert header.is_log_append_time
    assert header.is_transactional
    assert header.max_timestamp_ms == 777


def test_records_beyond_one_chunk_are_filtered_too():
    count = 70_000
    batch = build_records_batch(
        [Record(b"%d" % n, None if n % 7 == 0 else b"v", n) for n in range(count)],
        now_ms=0,
        compression=Compression.LZ4,
    )
    run = decode(batch, (0, parse_header(batch)))
    assert int(run.is_tombstone.sum()) == count // 7
    assert [row["offset"] for row in read(run.rebuild(0, np.array([0, 65_535, 65_536, count - 1]), 4))] == [
        0,
        65_535,
        65_536,
        count - 1,
    ]


@pytest.mark.parametrize("count", [3, 40])
def test_damage_is_told(count: int):
    batch = bytearray(make("records", Compression.NONE, [(b"k", b"v" * 50, 1, [])] * count))
    batch[61] = 0x7F
    with pytest.raises(CorruptBatch):
        decode(bytes(batch), (0, parse_header(batch)))
    with pytest.raises(CorruptBatch):
        list(decode_runs(bytes(batch), split(batch)))
