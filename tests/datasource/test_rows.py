"""The rows that a read gives are exactly of the types that Spark demands."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from pyspark_sparklog import rows
from pyspark_sparklog.rows import (
    ARROW_SCHEMA,
    ARROW_SCHEMA_WITH_HEADERS,
    put_together,
    refuse_other_schema,
    row_type,
    with_place,
)
from sparklog.model.errors import ConfigError
from sparklog.model.ids import TopicPartition
from sparklog.records.columns import HEADERS_TYPE, row_batch


def batch_of(count: int, first_offset: int = 0) -> pa.RecordBatch:
    return row_batch(
        key=pa.nulls(count, pa.binary()),
        value=pa.array([b"v%d" % (first_offset + i) for i in range(count)], pa.binary()),
        timestamps_ms=np.full(count, 1_700_000_000_000),
        headers=pa.array([[{"key": "h", "value": None}]] * count, HEADERS_TYPE),
        offsets=np.arange(first_offset, first_offset + count),
        timestamp_types=np.zeros(count, np.int32),
    )


@pytest.mark.parametrize(
    ("include_headers", "schema"), [(False, ARROW_SCHEMA), (True, ARROW_SCHEMA_WITH_HEADERS)]
)
def test_the_arrow_schema_is_sparks_own_mapping_of_the_row_type(
    include_headers: bool, schema: pa.Schema
) -> None:
    assert to_arrow_schema(row_type(include_headers), timezone="UTC").equals(schema)
    assert with_place(batch_of(2), TopicPartition("t", 3), include_headers).schema.equals(schema)


def test_rows_know_their_place() -> None:
    placed = with_place(batch_of(2, 7), TopicPartition("t", 3), True)
    assert placed.to_pylist()[1] == {
        "key": None,
        "value": b"v8",
        "topic": "t",
        "partition": 3,
        "offset": 8,
        "timestamp": pa.scalar(1_700_000_000_000_000, pa.timestamp("us", "UTC")).as_py(),
        "timestampType": 0,
        "headers": [{"key": "h", "value": None}],
    }


def test_small_batches_are_put_together_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "ROWS_MAX", 5)
    batches = list(put_together(batch_of(2, first) for first in range(0, 12, 2)))
    assert [batch.num_rows for batch in batches] == [4, 4, 4]
    assert pa.Table.from_batches(batches).column("offset").to_pylist() == list(range(12))


def test_a_batch_above_the_limits_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "BYTES_MAX", 1)
    assert [batch.num_rows for batch in put_together([batch_of(3), batch_of(9)])] == [3, 9]
    assert list(put_together([])) == []


def test_a_schema_of_the_users_is_refused() -> None:
    refuse_other_schema(row_type(False), False)
    with pytest.raises(ConfigError, match=r"fixed schema.*Given: struct<id:bigint>"):
        refuse_other_schema(StructType([StructField("id", LongType())]), False)
