"""A typed segment is a plain Arrow file of its columns, and every batch comes back byte for byte."""

from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparklog.model.errors import CorruptBatch
from sparklog.model.schema.data_types import all_fields
from sparklog.model.schema.ddl_parser import parse_ddl
from sparklog.model.schema.new_schema import new_schema
from sparklog.records.arrow.topic_columns import TopicColumns, UnknownColumns
from sparklog.records.control import TransactionEnd, build_marker
from sparklog.records.envelope import Compression, parse_header, stamp
from sparklog.records.remote_segment.arrow_object import check_arrow_object, open_arrow_object
from sparklog.records.remote_segment.column_statistics import OneColumn, PackedColumns, parse_columns
from sparklog.records.remote_segment.typed_message import ID_KEY
from sparklog.records.typed_decoding import TypedReading
from tests.records.arrow.typed_strategies import tables
from tests.records.remote_segment.segments import Built, append_timed, make, reader
from tests.records.remote_segment.typed_segments import FIRST, QUAKES, TOPIC, build_typed, typed

CODECS = [Compression.NONE, Compression.LZ4, Compression.ZSTD]
BARE = QUAKES.select(["id"])


def read_back(built: Built, topic: TopicColumns, version: int) -> pa.Table:
    """The rows that count, as a reader of that version has them from the log."""
    reading = TypedReading(topic, topic.at(version).columns)
    batches = [one.data for one in built.batches if one.has_rows]
    found = [row for data in batches for row in reading.read(data, [(0, parse_header(data))])]
    return pa.Table.from_batches(found, reading.schema)


def same_rows(built: Built, topic: TopicColumns, version: int) -> bool:
    """Whether the file has the rows that readers of the log get; NaN is NaN, and -0.0 is not 0.0."""
    stored, expected = built.table(), read_back(built, topic, version)
    assert stored.schema.names[:2] == ["_offset", "_timestamp"]
    stored.validate(full=True)
    stamps = stored.column("_timestamp").cast(pa.timestamp("us", "UTC"))
    stored = stored.set_column(1, "_timestamp", stamps).select(expected.schema.names)
    return (
        repr(stored.to_pylist()) == repr(expected.to_pylist())
        and stored.schema.types == expected.schema.types
    )


@settings(deadline=None, max_examples=60)
@given(
    drawn=tables(), codecs=st.tuples(st.sampled_from(CODECS), st.sampled_from(CODECS)), is_timed=st.booleans()
)
def test_rows_of_every_type_are_in_the_file_and_their_batches_come_back(
    drawn: Any, codecs: tuple[Compression, Compression], is_timed: bool
) -> None:
    topic, rows = drawn
    table = pa.Table.from_batches([rows])
    fewer = table.select([0])
    batches = [
        typed(table, 100, topic=topic, codec=codecs[0]),
        typed(fewer, 200, topic=topic, codec=codecs[1]),
    ]
    if is_timed:
        batches = [append_timed(batch) for batch in batches]
    built = build_typed(batches, topic=topic)
    assert built.rebuilt() == batches
    assert same_rows(built, topic, 1)


@pytest.mark.parametrize("codec", CODECS)
def test_offsets_and_times_stand_before_the_columns(codec: Compression) -> None:
    built = build_typed([typed(QUAKES, 100, codec=codec)])
    table = built.table()
    assert table.schema.names == ["_offset", "_timestamp", *QUAKES.schema.names]
    assert table.column("_offset").to_pylist() == [100, 101, 102, 103, 104]
    stamps = table.column("_timestamp").cast(pa.int64()).to_pylist()
    assert stamps == [1_000, 2_000, 1_700_000_000_123, 0, 5_000]
    assert table.drop_columns(["_offset", "_timestamp", "depth"]).equals(QUAKES.drop_columns(["depth"]))
    assert table.column("depth").to_pylist() == QUAKES.column("depth").to_pylist()


def test_every_column_and_every_field_of_a_struct_has_its_id() -> None:
    schema = build_typed([typed(BARE, 100, version=2)], version=2).table().schema

    def ids(fields: Any) -> dict[str, int]:
        found: dict[str, int] = {}
        for field in fields:
            if ID_KEY.encode() in (field.metadata or {}):
                found[field.name] = int(field.metadata[ID_KEY.encode()])
            if pa.types.is_struct(field.type):
                found |= ids([field.type.field(nth) for nth in range(field.type.num_fields)])
        return found

    assert ids(schema) == {field.name: field.id for field in all_fields(TOPIC.at(2).columns)}
    assert ids(schema)["magnitude"] == {field.name: field.id for field in FIRST.at(1)}["mag"]


@pytest.mark.parametrize("codec", CODECS)
def test_columns_that_a_batch_lacks_are_null_for_every_reader(codec: Compression, tmp_path: Any) -> None:
    ddl = (
        "id bigint, b boolean, t tinyint, s string, y binary, d decimal(38,3), f float, l array<string>, "
        "m map<string, decimal(3,1)>, r struct<a: array<struct<x: bigint>>, b: struct<c: boolean>>, at date"
    )
    topic = TopicColumns(new_schema(parse_ddl(ddl)))
    built = build_typed([typed(pa.table({"id": [1] * 9}), 100, topic=topic, codec=codec)], topic=topic)
    names = [field.name for field in topic.newest.columns[1:]]
    assert built.table().select(names).to_pylist() == [dict.fromkeys(names)] * 9
    assert same_rows(built, topic, 1)
    path = tmp_path / "bare.arrow"
    path.write_bytes(built.arrow)
    counted = ", ".join(f'count("{name}")' for name in names)
    bare = duckdb.from_arrow(pyarrow.dataset.dataset(path, format="ipc"))
    assert bare.aggregate(f"count(*), {counted}").fetchall() == [(9, *[0] * len(names))]
    without_map = [name for name in names if name != "m"]
    assert polars.read_ipc(path, columns=without_map).null_count().row(0) == (9,) * len(without_map)


def test_aborted_and_control_batches_have_no_rows_in_the_file_whatever_their_version() -> None:
    marker = bytearray(build_marker(TransactionEnd(False, 3), producer_id=1, producer_epoch=2, now_ms=9))
    stamp(marker, 0, 300, 7)
    batches = [
        typed(BARE, 90, version=2),
        typed(QUAKES, 100),
        typed(BARE, 200, version=2),
        bytes(marker),
        typed(QUAKES, 400),
    ]
    built = build_typed(batches, aborted=lambda nth: nth in (0, 2))
    assert built.rebuilt() == batches
    assert built.table().column("_offset").to_pylist() == [*range(100, 105), *range(400, 405)]


def test_the_body_of_a_batch_is_not_written_twice() -> None:
    rows = pa.table({"id": pa.array(range(20_000), pa.int64()), "mag": [n / 7 for n in range(20_000)]})
    for codec in CODECS:
        batch = typed(rows, 100, codec=codec)
        built = build_typed([batch])
        assert len(built.rest) < 2_000
        assert len(built.arrow) < len(batch) + 2 * 8 * 20_000 + 4_000 + 16 * 20_000 * (codec is CODECS[0])


def test_the_footer_has_the_bounds_of_each_column() -> None:
    built = build_typed([typed(QUAKES, 100), typed(BARE.slice(0, 1), 200)])
    opened = open_arrow_object(reader(built.arrow), len(built.arrow))
    assert opened.identity.schema_version == 1
    assert [block[:8] for block in opened.statistics] == [
        (5, 100, 104, 0, 1_700_000_000_123, 0, None, None),
        (1, 200, 200, 1_700_000_000_123, 1_700_000_000_123, 0, None, None),
    ]
    first, second = opened.columns
    assert first is not None
    assert first[1] == OneColumn(0, (1).to_bytes(8, "little"), (5).to_bytes(8, "little"))
    assert first[2] == OneColumn(1, b"Etna", b"Oslo")
    assert {number: one.null_count for number, one in first.items()} == {1: 0, 2: 1, 3: 1, 4: 1, 5: 2}
    assert second == {1: OneColumn(0, None, None)}, "what is not named is null in all rows"
    assert list(check_arrow_object(reader(built.arrow), opened)) == []


def test_bounds_end_where_a_footer_has_no_more_room() -> None:
    packed = PackedColumns(_room=50)
    for _ in range(3):
        packed.add({1: OneColumn(0, b"least", b"greatest")})
    assert packed.texts == ['{"1":[0,"6c65617374","6772656174657374"]}', "null", "null"]
    assert parse_columns([None, {"1": [0, "ff", None]}]) == [None, {1: OneColumn(0, b"\xff", None)}]


def test_what_does_not_belong_into_the_file_is_refused() -> None:
    with pytest.raises(
        CorruptBatch, match="at offset 200 has version 2 of the topic's columns, in a file of"
    ):
        build_typed([typed(QUAKES, 100), typed(BARE, 200, version=2)])
    with pytest.raises(UnknownColumns, match="rows of version 3 of the topic's columns: known are 1 to 2"):
        build_typed([typed(QUAKES, 100)], version=3)
    with pytest.raises(CorruptBatch):
        build_typed([make("records", Compression.NONE, [(b"k", b"v", 1, [])], 100)])
    damaged = bytearray(typed(QUAKES, 100))
    damaged[-20] ^= 1
    with pytest.raises(CorruptBatch, match="CRC"):
        build_typed([bytes(damaged)])
