"""Option ``where`` through Spark: its rows are those of Spark's own ``where``, in batches and streams."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.errors import PySparkException

import pyspark_sparklog
from sparklog.model.schema.data_types import Columns
from sparklog.model.schema.predicates.parser import parse_condition
from sparklog.records.arrow.row_filter import judged
from sparklog.testing import InProcessCluster
from sparklog_datasource.rows.typed_form import TypedForm, typed_row_type
from tests.records.arrow.condition_strategies import ROW, conditions

pytestmark = pytest.mark.integration

DDL = "id bigint, mag double, place string, at timestamp, s struct<a: bigint>"
MAGS = [float(n) for n in range(8)] + [float("nan"), None]
QUAKES = pa.table(
    {
        "id": range(10),
        "mag": MAGS,
        "place": [None, *"abcdefghi"],
        "at": pa.array([n * 1_000_000 for n in range(10)], pa.timestamp("us", "UTC")),
        "s": [{"a": n} for n in range(10)],
    }
)


@pytest.fixture(scope="module")
def quakes(cluster: InProcessCluster) -> str:
    cluster.create_topic("where-quakes", schema=DDL, timestamp="at", partitions=2)
    for first in range(0, 10, 2):
        cluster.produce("where-quakes", QUAKES.slice(first, 2), partition=first // 2 % 2)
    cluster.create_topic("where-lines")
    cluster.produce("where-lines", ["one", "two"])
    return "where-quakes"


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(PySparkException) as caught:
        action()
    return str(caught.value)


@settings(
    max_examples=20, deadline=None, phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(drawn=conditions())
def test_drawn_conditions_keep_the_rows_that_spark_keeps(
    drawn: tuple[Columns, pa.Table, str], spark: Any
) -> None:
    columns, table, text = drawn
    frame = spark.createDataFrame(table, typed_row_type(TypedForm.whole(columns)))
    arrays = {field.id: table.column(field.name).combine_chunks() for field in columns}
    ours = table.filter(judged(parse_condition(text, columns), arrays)).column(ROW).to_pylist()
    assert [row[ROW] for row in frame.where(text).select(ROW).orderBy(ROW).collect()] == ours


@pytest.mark.proof
@pytest.mark.parametrize(
    "condition",
    [
        "mag > 5 and at >= '1970-01-01T00:00:07Z'",
        "not (mag > 5 or place is null)",
        "place in ('a', 'i') or mag = 'NaN'",
        "place like 'c%' and id between 1 and 5",
        "id > 100",
    ],
)
def test_rows_are_those_of_sparks_own_where(quakes: str, read: Callable[..., Any], condition: str) -> None:
    found = read(quakes, where=condition)
    assert found.columns == read(quakes).columns
    expected = read(quakes).where(condition)
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))
    ids = read(quakes, where=condition, columns="id, _offset")
    assert sorted(ids.collect()) == sorted(read(quakes, includeMetadata="true").where(condition)
                                           .select("id", "_offset").collect())  # fmt: skip


def test_brokers_pass_batches_without_such_a_row_over(
    cluster: InProcessCluster, read: Callable[..., Any]
) -> None:
    cluster.create_topic("where-batches", schema="id bigint, place string")
    for first in range(0, 2_000, 200):
        ids = pa.array(range(first, first + 200), pa.int64())
        cluster.produce("where-batches", pa.table({"id": ids, "place": ["x" * 30] * 200}))
    before = passed_over(cluster)
    found = read("where-batches", where="id between 790 and 809", columns="place, _offset").collect()
    assert sorted(row["_offset"] for row in found) == list(range(790, 810))
    assert passed_over(cluster) >= before + 8


def passed_over(cluster: InProcessCluster) -> int:
    return sum(broker.body.context.conversions.passed_over for broker in cluster.brokers.values())


@pytest.mark.proof
def test_a_stream_keeps_its_condition_through_a_change_of_names(
    cluster: InProcessCluster, read_stream: Callable[..., Any], tmp_path: Any
) -> None:
    topic = "where-stream"
    cluster.create_topic(topic, schema="id bigint, mag double")
    cluster.produce(topic, pa.table({"id": [1, 2], "mag": [0.5, 7.5]}))
    frame = read_stream(topic, where="mag > 5", columns="id", startingOffsets="earliest")
    query = (
        frame.writeStream.format("memory").queryName("where_stream")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    )  # fmt: skip
    try:
        query.processAllAvailable()
        options = {"bootstrap.servers": cluster.bootstrap_servers}
        pyspark_sparklog.alter_topic(topic, "rename-column mag=size", "add-column mag int", options=options)
        cluster.produce(
            topic, pa.table({"id": [3, 4], "size": [9.5, 1.5], "mag": pa.array([0, 9], pa.int32())})
        )
        query.processAllAvailable()
    finally:
        query.stop()
    assert [
        row.id for row in frame.sparkSession.sql("select id from where_stream order by id").collect()
    ] == [2, 3]


@pytest.mark.proof
@pytest.mark.parametrize(
    ("topic", "condition", "words"),
    [
        ("where-quakes", "depth > 1", "no column depth in the topic"),
        ("where-quakes", "mag > 'strong'", "'strong' at character 7 is no value of column mag, a double"),
        ("where-quakes", "abs(mag) > 1", "functions have no place here"),
        ("where-quakes", "_offset > 1", "no column _offset in the topic"),
        ("where-quakes", " ", "option where is empty"),
        ("where-lines", "value > 'x'", "option where is for typed topics, and this read is of untyped topic"),
        ("where-missing", "mag > 1", "a topic that is not there yet"),
    ],
)  # fmt: skip
def test_wrong_conditions_are_refused_at_load(
    quakes: str, read: Callable[..., Any], topic: str, condition: str, words: str
) -> None:
    assert words in refused(lambda: read(topic, where=condition))
