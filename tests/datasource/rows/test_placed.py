"""The rows that a read gives are exactly of the types that Spark demands."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from sparklog.model.ids import TopicPartition
from sparklog.records.row_columns import HEADERS_TYPE, row_batch
from sparklog_datasource.rows import placed as module
from sparklog_datasource.rows.form import ColumnForm, RowForm, row_type
from sparklog_datasource.rows.placed import arrow_schema, put_together, with_place


def batch_of(count: int, first_offset: int = 0) -> pa.RecordBatch:
    return row_batch(
        key=pa.nulls(count, pa.binary()),
        value=pa.array([b"v%d" % (first_offset + i) for i in range(count)], pa.binary()),
        timestamps_ms=np.full(count, 1_700_000_000_000),
        headers=pa.array([[{"key": "h", "value": None}]] * count, HEADERS_TYPE),
        offsets=np.arange(first_offset, first_offset + count),
        timestamp_types=np.zeros(count, np.int32),
    )


@pytest.mark.parametrize("includes_headers", [False, True])
@pytest.mark.parametrize("key", ColumnForm)
@pytest.mark.parametrize("value", ColumnForm)
def test_the_arrow_schema_is_sparks_own_mapping_of_the_row_type(
    includes_headers: bool, key: ColumnForm, value: ColumnForm
) -> None:
    form = RowForm(includes_headers, key, value)
    schema = to_arrow_schema(row_type(form), timezone="UTC")
    assert arrow_schema(form).equals(schema)
    assert with_place(batch_of(2), TopicPartition("t", 3), form).schema.equals(schema)


def test_rows_know_their_place() -> None:
    placed = with_place(batch_of(2, 7), TopicPartition("t", 3), RowForm(includes_headers=True))
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


@pytest.mark.parametrize(
    "columns", [("offset",), ("headers", "value", "partition"), ("timestampType", "topic")]
)
def test_rows_have_the_columns_that_are_named(columns: tuple[str, ...]) -> None:
    form = RowForm(columns=columns)
    placed = with_place(batch_of(2, 7), TopicPartition("t", 3), form)
    assert placed.schema.equals(to_arrow_schema(row_type(form), timezone="UTC"))
    whole = with_place(batch_of(2, 7), TopicPartition("t", 3), RowForm(includes_headers=True))
    assert placed.to_pylist() == whole.select(list(columns)).to_pylist()


def test_small_batches_are_put_together_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_MAX", 5)
    batches = list(put_together(batch_of(2, first) for first in range(0, 12, 2)))
    assert [batch.num_rows for batch in batches] == [4, 4, 4]
    assert pa.Table.from_batches(batches).column("offset").to_pylist() == list(range(12))


def test_a_batch_above_the_limits_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES_MAX", 1)
    assert [batch.num_rows for batch in put_together([batch_of(3), batch_of(9)])] == [3, 9]
    assert list(put_together([])) == []
