import datetime as dt

import pyarrow as pa
import pytest

from sparklog.records.row_columns import HEADERS_TYPE, ROW_SCHEMA, normalise

NOW_MS = 99_000


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.record_batch(columns)


def test_the_row_schema_is_what_spark_maps_these_columns_to():
    types = pytest.importorskip("pyspark.sql.types")
    from pyspark.sql.pandas.types import to_arrow_schema

    header = types.StructType(
        [types.StructField("key", types.StringType()), types.StructField("value", types.BinaryType())]
    )
    row = types.StructType(
        [
            types.StructField("key", types.BinaryType()),
            types.StructField("value", types.BinaryType()),
            types.StructField("timestamp", types.TimestampType()),
            types.StructField("headers", types.ArrayType(header)),
            types.StructField("offset", types.LongType()),
            types.StructField("timestamp_type", types.IntegerType()),
        ]
    )
    assert to_arrow_schema(row, timezone="UTC") == ROW_SCHEMA


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.string(), pa.large_binary(), pa.large_string(), pa.binary_view(), pa.string_view()],
)
def test_every_kind_of_text_and_bytes_can_be_written(kind: pa.DataType):
    rows = normalise(batch(key=pa.array(["a", None], kind), value=pa.array(["x", "y"], kind)), NOW_MS)
    assert rows.key.type == rows.value.type == pa.binary()
    assert rows.key.to_pylist() == [b"a", None]


def test_columns_are_found_by_name_and_others_ignored():
    rows = normalise(batch(topic=pa.array(["t"]), value=pa.array([b"v"]), partition=pa.array([3])), NOW_MS)
    assert rows.row_count == 1
    assert rows.key is rows.headers is rows.timestamps_ms is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int64(), -1_500),
        (pa.timestamp("s"), -2),
        (pa.timestamp("ms", "UTC"), -1_500),
        (pa.timestamp("us", "UTC"), -1_500_000),
        (pa.timestamp("ns"), -1_500_000_000),
    ],
)
def test_timestamps_of_every_unit_become_milliseconds(kind: pa.DataType, value: int):
    rows = normalise(
        batch(value=pa.array([b"v", b"w"]), timestamp=pa.array([value, None], pa.int64()).view(kind)), NOW_MS
    )
    assert rows.timestamps_ms is not None
    assert rows.timestamps_ms.tolist() == [-2_000 if kind == pa.timestamp("s") else -1_500, NOW_MS]


def test_microseconds_are_cut_towards_the_past():
    stamps = pa.array([1_999, -1], pa.timestamp("us"))
    rows = normalise(batch(value=pa.array([b"v", b"w"]), timestamp=stamps), NOW_MS)
    assert rows.timestamps_ms is not None
    assert rows.timestamps_ms.tolist() == [1, -1]


def test_columns_that_are_all_null_are_absent():
    rows = normalise(
        batch(
            key=pa.nulls(2),
            value=pa.nulls(2),
            timestamp=pa.nulls(2, pa.timestamp("us")),
            headers=pa.nulls(2, HEADERS_TYPE),
        ),
        NOW_MS,
    )
    assert rows.key is rows.headers is rows.timestamps_ms is None
    assert rows.value.to_pylist() == [None, None]


def test_a_table_of_several_chunks_is_one_batch():
    table = pa.concat_tables(pa.table({"value": pa.array([letter])}) for letter in (b"a", b"b", b"c"))
    assert table.column(0).num_chunks == 3
    assert normalise(table, NOW_MS).value.to_pylist() == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"key": pa.array([b"k"])}, "'value' is missing"),
        ({"value": pa.array([1])}, "cannot be written as binary"),
        ({"value": pa.array([b"v"]), "timestamp": pa.array(["now"])}, "must be a timestamp"),
        ({"value": pa.array([b"v"]), "timestamp": pa.array([dt.date(2020, 1, 1)])}, "must be a timestamp"),
        ({"value": pa.array([b"v"]), "headers": pa.array([["h"]])}, "column 'headers' of type"),
        ({"value": pa.array([b"v"]), "headers": pa.array([[None]], HEADERS_TYPE)}, "null header"),
        (
            {"value": pa.array([b"v"]), "headers": pa.array([[{"key": None, "value": b"x"}]], HEADERS_TYPE)},
            "null key",
        ),
        ({"value": pa.array([], pa.binary())}, "no rows"),
    ],
)
def test_what_cannot_be_written_is_refused_with_the_reason(columns: dict[str, pa.Array], complaint: str):
    with pytest.raises(ValueError, match=complaint):
        normalise(batch(**columns), NOW_MS)


def test_no_chunks_at_all_are_no_rows():
    with pytest.raises(ValueError, match="no rows"):
        normalise(pa.schema([("value", pa.binary())]).empty_table(), NOW_MS)
