import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch, ErrorCode, SchemaError
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.new_schema import new_schema
from sparklog.records.arrow.arrow_times import times_of
from sparklog.records.arrow.arrow_types import columns_of_arrow
from sparklog.records.arrow.header import parse_arrow_header
from sparklog.records.arrow.topic_columns import TopicColumns, UnknownColumns
from sparklog.records.arrow.typed_payload import check_not_null, read_typed
from sparklog.records.arrow.written_rows import WrittenRows
from sparklog.records.envelope import Compression, crc_matches, parse_header, stamp
from sparklog.records.payload import payload_of
from sparklog.records.payload_kinds import ALL_PAYLOADS, SUPPORTED_PAYLOADS
from sparklog.records.restamp import set_append_time, set_producer
from sparklog.records.typed_decoding import TypedReading
from sparklog.records.validate import TYPED, Accepted, RefusedBatch, check_produced
from tests.records.arrow.typed_strategies import tables

NOW_MS = 1_700_000_000_123
CODECS = [Compression.NONE, Compression.LZ4, Compression.ZSTD]
TOPIC = TopicColumns(
    new_schema(parse_ddl("id bigint NOT NULL, name string, at timestamp, tags array<string>"), "id", "at")
)
ROWS = pa.record_batch(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "at": pa.array([5_000_999, None, -1], pa.timestamp("us", "Europe/Berlin")),
        "tags": pa.array([["a", None], None, []], pa.large_list(pa.large_string())),
    }
)


def written(rows: pa.RecordBatch = ROWS, topic: TopicColumns = TOPIC, codec: Compression = Compression.NONE):
    writing = WrittenRows.fitting(topic.newest, columns_of_arrow(rows.schema))
    return writing.encode(writing.rows(rows), now_ms=NOW_MS, compression=codec)


def read(batch: bytes | bytearray, topic: TopicColumns = TOPIC) -> pa.Table:
    reading = TypedReading(topic, topic.newest.columns)
    return pa.Table.from_batches(reading.read(batch, [(0, parse_header(batch))]), reading.schema)


def produced(batch: bytes | bytearray, topic: TopicColumns | None = TOPIC, kinds=ALL_PAYLOADS):
    return check_produced(batch, max_batch_bytes=1 << 20, payload_kinds=kinds, columns=topic)


def same(left: pa.Array, right: pa.Array) -> bool:
    """Equal with NaN equal to NaN, and -0.0 not to 0.0."""
    return left.type == right.type and repr(left.to_pylist()) == repr(right.to_pylist())


@settings(deadline=None, max_examples=60)
@given(drawn=tables(), codec=st.sampled_from(CODECS))
def test_rows_of_every_type_come_back_equal(drawn, codec: Compression):
    topic, rows = drawn
    batch = written(rows, topic, codec)
    assert isinstance(produced(batch, topic), Accepted)
    found = read(batch, topic)
    for name in rows.schema.names:
        assert same(found.column(name).combine_chunks(), rows.column(name))
    assert found.column("_offset").to_pylist() == list(range(rows.num_rows))


@settings(deadline=None, max_examples=40)
@given(drawn=tables(), start=st.integers(0, 5))
def test_a_slice_is_written_as_what_it_shows(drawn, start: int):
    topic, rows = drawn
    part = rows.slice(min(start, rows.num_rows - 1))
    found = read(written(part, topic), topic)
    for name in part.schema.names:
        assert same(found.column(name).combine_chunks(), part.column(name))


@pytest.mark.parametrize("codec", CODECS)
def test_what_a_writer_lacks_is_null_and_absent_and_its_forms_of_a_type_are_normalised(codec: Compression):
    batch = written(codec=codec)
    header = parse_arrow_header(memoryview(batch)[61:])
    assert [column.column_id for column in header.columns] == [1, 3, 4]
    found = read(batch)
    assert found.select(["id", "name", "tags"]).to_pylist() == [
        {"id": 1, "name": None, "tags": ["a", None]},
        {"id": 2, "name": None, "tags": None},
        {"id": 3, "name": None, "tags": []},
    ]
    assert found.schema.field("at").type == pa.timestamp("us", "UTC")


def test_rows_whose_columns_are_all_null_are_counted():
    topic = TopicColumns(new_schema(parse_ddl("a int, b map<string, int>")))
    found = read(written(pa.record_batch({"a": pa.nulls(4, pa.int32())}), topic), topic)
    assert found.select(["a", "b"]).to_pylist() == [{"a": None, "b": None}] * 4


@pytest.mark.parametrize("codec", CODECS)
def test_the_time_is_the_columns_in_milliseconds_and_null_is_the_time_of_writing(codec: Compression):
    batch = written(codec=codec)
    header = parse_header(batch)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (NOW_MS, NOW_MS)
    stamps = [5_000, NOW_MS, 0]
    assert times_of(batch, header).timestamps_ms.tolist() == stamps
    found = read(batch).column("_timestamp").cast(pa.int64()).to_pylist()
    assert found == [1_000 * stamp for stamp in stamps]


def test_offsets_and_times_are_read_without_a_schema_and_after_an_append():
    batch = bytearray(written())
    stamp(batch, 0, 70, 4)
    times = payload_of(parse_header(batch)).times(batch, parse_header(batch))
    assert times.offsets.tolist() == [70, 71, 72]
    appended = set_append_time(batch, 0, 9_000)
    assert times_of(batch, appended).timestamps_ms.tolist() == [9_000] * 3
    assert read(batch).column("_timestamp").cast(pa.int64()).to_pylist() == [9_000_000] * 3


def test_a_producers_number_and_log_append_time_leave_every_crc_right():
    batch = bytearray(written())
    set_producer(batch, 0, 7, 1, 40, is_transactional=True)
    set_append_time(batch, 0, 9_000)
    header = parse_header(batch)
    assert crc_matches(batch, 0, header)
    assert (header.producer_id, header.base_sequence, header.max_timestamp_ms) == (7, 40, 9_000)
    assert read_typed(batch, header, TOPIC).row_count == 3


def test_every_damaged_byte_is_noticed_by_a_crc_of_the_payload_too():
    batch = written(codec=Compression.LZ4)
    for position in range(21, len(batch)):
        damaged = bytearray(batch)
        damaged[position] ^= 1
        header = parse_header(batch)  # an envelope whose own CRC nobody compared
        try:
            rows = read_typed(damaged, header, TOPIC)
        except CorruptBatch:
            continue
        # what lies between header and message, or between buffers, is zeros that nobody reads
        assert [column.to_pylist() for column in rows.present.values()] == [
            column.to_pylist() for column in read_typed(batch, header, TOPIC).present.values()
        ]
        assert batch[position] == 0, position


def test_a_null_in_a_column_that_is_not_null_is_refused_by_the_writer_and_by_the_leader():
    rows = pa.record_batch({"id": pa.array([1, None], pa.int64())})
    loose = TopicColumns(
        new_schema(parse_ddl("id bigint, name string, at timestamp, tags array<string>"), "id", "at")
    )
    with pytest.raises(SchemaError, match="column id is NOT NULL in the topic, and null in 1 of 2 rows"):
        written(rows)
    batch = written(rows, loose)
    with pytest.raises(SchemaError, match="column id is NOT NULL in the topic, and null in 1 of 2 rows"):
        check_not_null(read_typed(batch, parse_header(batch), TOPIC))
    verdict = produced(batch)
    assert isinstance(verdict, RefusedBatch)
    assert (verdict.error, "null in 1 of 2" in verdict.message) == (ErrorCode.invalid_record, True)
    absent = written(pa.record_batch({"name": ["x"]}), loose)
    assert "null in 1 of 1" in produced(absent).message


def test_a_version_that_is_not_known_is_refused():
    topic = TopicColumns(TOPIC.document)
    batch = bytearray(written())
    batch[61 + 12] = 9
    from sparklog.records.arrow.envelope_crc import write_envelope_crc

    write_envelope_crc(batch)
    with pytest.raises(UnknownColumns, match="version 9 of the topic's columns: known are 1 to 1"):
        read_typed(batch, parse_header(batch), topic)
    set_producer(batch, 0, -1, -1, -1)
    assert "version 9" in produced(batch).message


def test_a_typed_topic_takes_typed_rows_alone_and_an_untyped_one_takes_none():
    plain = payload_of(parse_header(written())).from_columns(
        pa.record_batch({"value": [b"x"] * 40}), now_ms=1
    )
    assert "version 1 in a typed topic" in produced(plain).message
    assert "rows of a typed topic" in produced(written(), None).message
    verdict = produced(written(), kinds=SUPPORTED_PAYLOADS)
    assert verdict.error is ErrorCode.unsupported_for_message_format
    old = bytearray(written())
    old[16] = 1
    assert produced(old).message == TYPED


def test_another_key_or_timestamp_column_than_the_topics_is_refused():
    other = TopicColumns(
        new_schema(parse_ddl("id bigint NOT NULL, name string, at timestamp, tags array<string>"), "name")
    )
    assert "are not those of the topic" in produced(written(topic=other)).message


def test_layouts_that_are_not_the_versions_are_refused():
    wider = TopicColumns(
        new_schema(parse_ddl("id string, name string, at timestamp, tags array<string>"), "id", "at")
    )
    batch = written(pa.record_batch({"id": ["x"]}), wider)
    assert "wrong nodes or buffers" in produced(batch).message


def test_one_column_of_a_topic_is_mapped_alone():
    reading = TypedReading(TOPIC, TOPIC.newest.columns[2:3])
    batch = written()
    (rows,) = reading.read(batch, [(0, parse_header(batch))])
    assert rows.schema.names == ["at", "_offset", "_timestamp"]
    assert rows.column("at")[0].as_py() == datetime.datetime(1970, 1, 1, 0, 0, 5, 999, datetime.UTC)


def test_nothing_is_copied_where_types_are_equal():
    data = np.arange(10_000, dtype=np.int64)
    rows = pa.record_batch({"id": pa.array(data), "name": pa.array(["x"] * 10_000)})
    writing = WrittenRows.fitting(TOPIC.newest, columns_of_arrow(rows.schema))
    taken = writing.rows(rows)
    for name in ("id", "name"):
        own, theirs = taken.column(name).buffers(), rows.column(name).buffers()
        assert [one and one.address for one in own] == [one and one.address for one in theirs]
