"""Rows go to the partition that their column, their key, or the partitioner says."""

import pyarrow as pa
import pytest

from sparklog.client.partitioning.partitioner import partition_for_key
from sparklog.model.errors import SparklogError
from sparklog_datasource.writing.placing import STICKY_BYTES, PartitionChoice, rows_by_topic
from sparklog_datasource.writing.row_sizes import row_sizes


def written(**columns: pa.Array) -> pa.RecordBatch:
    """One topic's rows, as rows_by_topic gives them."""
    ((_, rows),) = rows_by_topic(pa.record_batch(columns), "t")
    return rows


def chosen(rows: pa.RecordBatch, partitions: int, first_sticky: int = 0) -> list[int]:
    choice = PartitionChoice("t", partitions, first_sticky)
    return choice.choose(rows, row_sizes(rows)).tolist()


def test_a_key_goes_where_javas_partitioner_sends_it() -> None:
    keys = ["a", "key-1", "", "übermut"]
    rows = written(key=pa.array(keys), value=pa.array(["v"] * 4))
    assert chosen(rows, 7) == [partition_for_key(key.encode(), 7) for key in keys]


def test_the_partition_column_comes_before_the_key_which_decides_where_it_is_null() -> None:
    rows = written(
        key=pa.array(["k", "k", None]),
        value=pa.array(["v"] * 3),
        partition=pa.array([3, None, 1], pa.int32()),
    )
    assert chosen(rows, 5) == [3, partition_for_key(b"k", 5), 1]


@pytest.mark.parametrize("partition", [-1, 5])
def test_a_partition_that_there_is_not_is_an_error(partition: int) -> None:
    rows = written(value=pa.array(["v"] * 2), partition=pa.array([None, partition], pa.int32()))
    with pytest.raises(
        SparklogError, match=rf"column 'partition' names partition {partition}, .*'t'.* 0 to 4"
    ):
        chosen(rows, 5)


def test_rows_without_a_key_stick_to_one_partition_for_a_while() -> None:
    rows = written(value=pa.array(["v" * 1_000] * 400))
    partitions = chosen(rows, 3, first_sticky=2)
    assert set(partitions[: STICKY_BYTES // 1_100]) == {2}
    assert [number for i, number in enumerate(partitions) if i == 0 or partitions[i - 1] != number] == [
        2,
        0,
        1,
        2,
    ]


def test_sticking_goes_on_over_spark_batches() -> None:
    choice = PartitionChoice("t", 2, 0)
    rows = written(value=pa.array(["v" * 1_000] * 50))
    found = [number for _ in range(10) for number in choice.choose(rows, row_sizes(rows)).tolist()]
    together = written(value=pa.array(["v" * 1_000] * 500))
    assert found == chosen(together, 2)


def test_a_null_key_sticks_although_others_have_keys() -> None:
    rows = written(key=pa.array([None, b"k", None]), value=pa.array(["v"] * 3))
    assert chosen(rows, 9, first_sticky=4) == [4, partition_for_key(b"k", 9), 4]


def test_text_becomes_bytes_and_missing_columns_are_null() -> None:
    rows = written(value=pa.array(["é"]), other=pa.array([1]))
    assert rows.to_pylist() == [{"key": None, "value": "é".encode(), "headers": None, "partition": None}]


def test_large_types_are_taken_too() -> None:
    rows = written(key=pa.array(["k"], pa.large_string()), value=pa.array([b"v"], pa.large_binary()))
    assert rows.schema.field("key").type == rows.schema.field("value").type == pa.binary()


def test_the_topic_column_tells_rows_apart_in_their_order() -> None:
    batch = pa.record_batch({"topic": pa.array(["b", "a", "b"]), "value": pa.array(["1", "2", "3"])})
    found = {topic: rows.column("value").to_pylist() for topic, rows in rows_by_topic(batch, None)}
    assert found == {"b": [b"1", b"3"], "a": [b"2"]}


def test_the_topic_option_overrides_the_column() -> None:
    batch = pa.record_batch({"topic": pa.array(["b", None]), "value": pa.array(["1", "2"])})
    ((topic, rows),) = rows_by_topic(batch, "t")
    assert (topic, rows.num_rows) == ("t", 2)


def test_a_null_topic_is_an_error_that_says_what_to_do() -> None:
    batch = pa.record_batch({"topic": pa.array(["b", None]), "value": pa.array(["1", "2"])})
    with pytest.raises(SparklogError, match=r"null topic present in the data.*1 of 2 rows; set option topic"):
        list(rows_by_topic(batch, None))


def test_an_illegal_topic_is_an_error() -> None:
    batch = pa.record_batch({"topic": pa.array(["a b"]), "value": pa.array(["1"])})
    with pytest.raises(SparklogError, match=r"column 'topic': topic name 'a b'"):
        list(rows_by_topic(batch, None))
