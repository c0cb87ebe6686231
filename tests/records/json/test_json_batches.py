"""Typed batches as records of JSON: offsets, times, keys, and parts of a batch."""

import json
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.model.schema.change_texts import parse_change
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.evolution import changed
from sparklog.model.schema.new_schema import new_schema
from sparklog.records.arrow.arrow_types import columns_of_arrow
from sparklog.records.arrow.topic_columns import TopicColumns, UnknownColumns
from sparklog.records.arrow.written_rows import WrittenRows
from sparklog.records.bridge import repeated_text
from sparklog.records.decoding import read_columns
from sparklog.records.envelope import ENVELOPE_BYTES, Compression, crc_matches, parse_header, split, stamp
from sparklog.records.json import json_batches as module
from sparklog.records.json.json_batches import JsonBatches, RowTooLarge, json_batches
from sparklog.records.restamp import set_append_time, set_producer

LARGE = 1 << 30
NOW_MS = 1_700_000_000_123
TOPIC = TopicColumns(new_schema(parse_ddl("id bigint, name string, at timestamp"), "id", "at"))
OFFSET = 1_000


def written(rows: pa.RecordBatch, topic: TopicColumns = TOPIC) -> bytearray:
    writing = WrittenRows.fitting(topic.newest, columns_of_arrow(rows.schema))
    batch = bytearray(writing.encode(writing.rows(rows), now_ms=NOW_MS, compression=Compression.ZSTD))
    stamp(batch, 0, OFFSET, 7)
    return batch


def rows_of(count: int, text: str = "x") -> pa.RecordBatch:
    return pa.record_batch(
        {
            "id": pa.array(range(count), pa.int64()),
            "name": repeated_text(text, count),
            "at": pa.array([nth * 1_000_500 for nth in range(count)], pa.timestamp("us", "UTC")),
        }
    )


def given_of(batch: bytes | bytearray, start: int = 0, bytes_max: int = LARGE) -> JsonBatches:
    return json_batches(batch, TOPIC, from_offset=start, bytes_max=bytes_max, at_least_one=False)


def records_in(given: JsonBatches) -> list[dict[str, Any]]:
    data = b"".join(given.batches)
    assert len(data) == given.size_bytes
    batches = split(data)
    assert all(crc_matches(data, position, header) for position, header in batches)
    return [row for rows in read_columns(data, batches) for row in rows.to_pylist()]


def test_offsets_times_and_keys_are_the_rows_own() -> None:
    records = records_in(given_of(written(rows_of(3))))
    assert [record["offset"] for record in records] == [OFFSET, OFFSET + 1, OFFSET + 2]
    assert [record["timestamp"].timestamp() for record in records] == [0, 1, 2.001]
    assert [record["key"] for record in records] == [b"0", b"1", b"2"]
    assert [json.loads(record["value"]) for record in records][1:] == [
        {"id": 1, "name": "x", "at": "1970-01-01T00:00:01.000500Z"},
        {"id": 2, "name": "x", "at": "1970-01-01T00:00:02.001000Z"},
    ]


def test_a_null_key_is_none_and_a_topic_without_a_key_column_has_none() -> None:
    rows = pa.record_batch({"id": pa.array([None, 5], pa.int64())})
    assert [record["key"] for record in records_in(given_of(written(rows)))] == [None, b"5"]
    topic = TopicColumns(new_schema(parse_ddl("id bigint")))
    given = json_batches(written(rows, topic), topic, from_offset=0, bytes_max=LARGE, at_least_one=False)
    assert [(record["key"], record["value"]) for record in records_in(given)] == [
        (None, b"{}"),
        (None, b'{"id":5}'),
    ]


def test_producer_and_append_time_stay() -> None:
    batch = written(rows_of(20_000))
    set_producer(batch, 0, 11, 2, 2**31 - 10, is_transactional=True)
    set_append_time(batch, 0, 99_000)
    given = given_of(batch)
    headers = [parse_header(one) for one in given.batches]
    assert len(headers) > 2
    assert {(one.producer_id, one.producer_epoch, one.is_transactional) for one in headers} == {(11, 2, True)}
    assert {(one.max_timestamp_ms, one.is_log_append_time, one.leader_epoch) for one in headers} == {
        (99_000, True, 7)
    }
    for one in headers:
        assert one.base_sequence == (2**31 - 10 + one.base_offset - OFFSET) % 2**31
        assert one.record_count == one.last_offset_delta + 1
    assert headers[-1].last_offset == OFFSET + 19_999


@settings(deadline=None, max_examples=30)
@given(start=st.integers(0, 299), bytes_max=st.integers(0, 40_000))
def test_a_reader_gets_every_row_once_in_parts_that_keep_to_its_limit(start: int, bytes_max: int) -> None:
    batch, seen = written(rows_of(300, "x" * 100)), []
    offset = OFFSET + start
    while True:
        given = json_batches(batch, TOPIC, from_offset=offset, bytes_max=bytes_max, at_least_one=True)
        records = records_in(given)
        assert given.size_bytes <= bytes_max or len(records) == 1
        assert len(records) == given.record_count > 0
        seen += [record["offset"] for record in records]
        offset = parse_header(given.batches[-1]).next_offset
        if given.is_whole:
            break
    assert seen == list(range(OFFSET + start, OFFSET + 300))


def test_a_reader_without_room_gets_nothing_unless_it_must() -> None:
    batch = written(rows_of(3))
    for bytes_max in (-5, 0, 61, 90):
        assert given_of(batch, bytes_max=bytes_max) == ((), 0, 0, False)
    one = json_batches(batch, TOPIC, from_offset=OFFSET + 1, bytes_max=0, at_least_one=True)
    assert [record["offset"] for record in records_in(one)] == [OFFSET + 1]
    assert not one.is_whole
    assert given_of(batch, OFFSET + 3) == ((), 0, 0, True)


def test_the_limit_is_used_up_but_for_less_than_a_row() -> None:
    batch = written(rows_of(30_000, "x" * 200))
    given = given_of(batch, bytes_max=1_000_000)
    assert 1_000_000 - 61 - 400 < given.size_bytes <= 1_000_000
    assert len(given.batches) < 12


def test_a_row_above_the_limit_of_all_is_refused_and_those_in_front_are_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BYTES_AT_ONCE_MAX", 5_000)
    monkeypatch.setattr(module, "BYTES_AT_ONCE_MIN", 5_000)
    monkeypatch.setattr(module, "ROW_BYTES_MAX", 30_000)
    rows = pa.record_batch({"id": [1, 2, 3], "name": ["x" * 20_000, "\x01" * 6_000, "y"]})
    batch = written(rows)
    given = given_of(batch)
    assert [json.loads(record["value"])["id"] for record in records_in(given)] == [1]
    assert not given.is_whole
    with pytest.raises(RowTooLarge, match=r"the row at offset 1001 may be 36\d{3} bytes as JSON"):
        given_of(batch, OFFSET + 1)
    assert len(records_in(given_of(batch, OFFSET + 2))) == 1


def test_rows_of_every_version_are_shown_in_the_newest_columns() -> None:
    first = new_schema(parse_ddl("id int, name string, s struct<a: float, b: int>"), "id")
    rows = pa.record_batch(
        {
            "id": pa.array([7], pa.int32()),
            "name": ["x"],
            "s": pa.array([{"a": 0.5, "b": 1}], pa.struct([("a", pa.float32()), ("b", pa.int32())])),
        }
    )
    batch = written(rows, TopicColumns(first))
    changes = [
        ("rename-column", 'id=`a"b`'),
        ("widen-column", '`a"b` bigint'),
        ("drop-column", "name"),
        ("add-column", "name int"),
        ("drop-column", "s.b"),
        ("widen-column", "s.a double"),
    ]
    later = TopicColumns(changed(first, [parse_change(*change) for change in changes]))
    given = json_batches(batch, later, from_offset=0, bytes_max=LARGE, at_least_one=False)
    (record,) = records_in(given)
    assert (record["key"], record["value"]) == (b"7", b'{"a\\"b":7,"s":{"a":0.5}}')


def test_a_version_that_is_not_known_yet_is_no_damage() -> None:
    with pytest.raises(UnknownColumns, match="rows of version 9"):
        given_of(of_version_9(rows_of(1)))


def of_version_9(rows: pa.RecordBatch) -> bytearray:
    batch = written(rows)
    struct.pack_into("<I", batch, ENVELOPE_BYTES + 12, 9)
    set_append_time(batch, 0, 5)  # with all CRCs
    return batch


def test_damage_is_told_and_not_given_a_new_crc() -> None:
    batch = written(rows_of(1))
    batch[-1] ^= 1
    with pytest.raises(CorruptBatch, match="offset 1000 does not match its CRC"):
        given_of(batch)
