"""Reads that name their columns, through Spark: by option, schema or view, in batches and streams."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import pyspark_sparklog
from sparklog.model.errors import SparklogError
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

DDL = "id bigint, mag double, `a b` string, s struct<a: bigint>, at timestamp"
ROWS = pa.table(
    {
        "id": range(9),
        "mag": [n / 2 for n in range(9)],
        "a b": ["x" * 400] * 9,
        "s": [{"a": n} for n in range(9)],
        "at": pa.array([n * 1_000_000 for n in range(9)], pa.timestamp("us", "UTC")),
    }
)


@pytest.fixture(scope="module")
def quakes(cluster: InProcessCluster) -> str:
    cluster.create_topic("columns-quakes", schema=DDL, timestamp="at")
    cluster.produce("columns-quakes", ROWS)
    cluster.create_topic("columns-lines")
    cluster.produce("columns-lines", ["one", "two"])
    return "columns-quakes"


def cut_batches(cluster: InProcessCluster) -> int:
    return sum(broker.body.context.conversions.cut_batches for broker in cluster.brokers.values())


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(PySparkException) as caught:
        action()
    return str(caught.value)


def test_columns_come_in_their_order_and_leave_brokers_alone(
    quakes: str, cluster: InProcessCluster, read: Callable[..., Any]
) -> None:
    before = cut_batches(cluster)
    found = read(quakes, columns="`a b`, _offset, mag, _timestamp, _topic, _partition")
    assert found.columns == ["a b", "_offset", "mag", "_timestamp", "_topic", "_partition"]
    rows = found.collect()
    assert [(row["_offset"], row.mag, row["_timestamp"].timestamp()) for row in rows] == [
        (n, n / 2, n) for n in range(9)
    ]
    assert set(rows[0].asDict().values()) >= {"x" * 400, quakes, 0}
    assert read(quakes, columns="_offset").count() == 9
    assert [row.s.a for row in read(quakes, columns="s").collect()] == list(range(9))
    assert cut_batches(cluster) >= before + 3


def test_a_schema_and_a_view_name_columns_too(quakes: str, cluster: InProcessCluster, spark: Any) -> None:
    servers, before = cluster.bootstrap_servers, cut_batches(cluster)
    reader = spark.read.format("sparklog").option("bootstrap.servers", servers).option("subscribe", quakes)
    found = reader.schema("mag double, _offset bigint, id bigint COMMENT 'x'").load()
    assert [tuple(row) for row in found.collect()] == [(n / 2, n, n) for n in range(9)]
    spark.sql(
        f"create or replace temporary view quakes_ids (id bigint) using sparklog options (bootstrap.servers "
        f"'{servers}', subscribe '{quakes}')"
    )
    assert [row.id for row in spark.sql("select * from quakes_ids order by id").collect()] == list(range(9))
    assert cut_batches(cluster) >= before + 2
    for ddl, words in [
        ("id bigint, Mag double", "no column Mag (near mag) in topic"),
        ("id int", "column id is int by the schema of the read, and bigint in its rows"),
        ("id bigint not null", "column id is NOT NULL by the schema of the read"),
        ("s struct<b: int>", "column s is struct<b:int> by the schema"),
    ]:
        assert words in refused(lambda ddl=ddl: reader.schema(ddl).load().collect())
    reader.option("columns", "id")
    assert "name different columns" in refused(lambda: reader.schema("mag double").load().collect())


def test_untyped_topics_take_both_with_their_own_names(
    quakes: str, cluster: InProcessCluster, spark: Any, read: Callable[..., Any]
) -> None:
    lines = read("columns-lines", columns="offset, value", valueFormat="string")
    assert [tuple(row) for row in lines.collect()] == [(0, "one"), (1, "two")]
    assert read("columns-lines", columns="offset").count() == 2
    assert [row.headers for row in read("columns-lines", columns="headers").collect()] == [None, None]
    reader = spark.read.format("sparklog").option("bootstrap.servers", cluster.bootstrap_servers)
    found = reader.option("subscribe", "columns-lines").schema("value binary, partition int").load()
    assert [tuple(row) for row in found.collect()] == [(b"one", 0), (b"two", 0)]


def test_a_stream_reads_the_columns_that_it_names_through_a_change(
    cluster: InProcessCluster, read_stream: Callable[..., Any], tmp_path: Any
) -> None:
    topic = "columns-stream"
    cluster.create_topic(topic, schema="id bigint, mag double, text string")
    cluster.produce(topic, pa.table({"id": [1], "mag": [0.5], "text": ["x" * 300]}))
    before = cut_batches(cluster)
    frame = read_stream(topic, columns="mag, _offset", startingOffsets="earliest")
    query = (
        frame.writeStream.format("memory").queryName("columns_stream")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    )  # fmt: skip
    try:
        query.processAllAvailable()
        options = {"bootstrap.servers": cluster.bootstrap_servers}
        pyspark_sparklog.alter_topic(topic, "rename-column mag=size", "add-column mag int", options=options)
        cluster.produce(topic, pa.table({"size": [1.5], "mag": pa.array([7], pa.int32())}))
        query.processAllAvailable()
    finally:
        query.stop()
    found = frame.sparkSession.sql("select mag, _offset from columns_stream order by _offset").collect()
    assert [tuple(row) for row in found] == [(0.5, 0), (1.5, 1)]
    assert cut_batches(cluster) >= before + 2


def test_a_plan_says_which_columns_it_needs(
    quakes: str, spark: Any, read: Callable[..., Any], read_stream: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    frame = read(quakes)
    frame.createOrReplaceTempView("columns_view")
    needed = pyspark_sparklog.needed_columns
    assert needed(frame.where("mag > 1").select("id")) == ["id, mag"]
    assert capsys.readouterr().out == '.option("columns", "id, mag")\n'
    assert needed(frame.groupBy().count()) == ["_offset"]
    assert needed(read("columns-lines").groupBy().count()) == ["offset"]
    assert needed(frame) == ["id, mag, `a b`, s, at"]
    assert needed(frame.select("id").union(read(quakes).selectExpr("mag"))) == ["id", "mag"]
    assert needed(frame.union(read(quakes)).select("id")) == ["id", "id"]
    assert needed(frame.alias("a").join(read(quakes).alias("b"), "id").select("a.mag")) == ["id, mag", "id"]
    assert needed(
        spark.sql("select id from columns_view where mag = (select max(mag) from columns_view)")
    ) == [
        "id, mag",
        "mag",
    ]
    assert needed(read_stream(quakes).withWatermark("at", "1 hour").select("s.a")) == ["s, at"]
    assert needed(frame.select("id").mapInArrow(lambda rows: rows, "id bigint")) == ["id"]
    assert needed(frame.groupBy("id").agg({"mag": "max"}).sort("id").limit(3)) == ["id, mag"]
    with pytest.raises(SparklogError, match="no read of format sparklog"):
        needed(spark.range(3))
    with pytest.raises(SparklogError, match="Spark Connect"):
        needed(object())


def test_what_the_plan_needs_is_enough(quakes: str, read: Callable[..., Any]) -> None:
    def biggest(frame: Any) -> Any:
        return frame.where("mag > 1").groupBy().agg({"s.a": "max", "id": "sum"})

    (columns,) = pyspark_sparklog.needed_columns(biggest(read(quakes)))
    assert columns == "id, mag, s"
    assert biggest(read(quakes, columns=columns)).collect() == biggest(read(quakes)).collect()
