"""Columns change under running queries: they keep the columns of their plan, and lose no row."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import pyspark_sparklog
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.testing import InProcessCluster

pytestmark = pytest.mark.integration

FLOAT = pa.array([0.5], pa.float32())


@pytest.fixture
def alter(cluster: InProcessCluster) -> Callable[..., int]:
    """Change a topic's columns, as users do from Python."""

    def change(topic: str, *changes: str) -> int:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        return pyspark_sparklog.alter_topic(topic, *changes, options=servers)

    return change


def ddl_of(cluster: InProcessCluster, topic: str) -> str:
    document = describe_schemas(cluster.client, [topic])[topic]
    return ddl_text(document.at(document.version))


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(PySparkException) as caught:
        action()
    return str(caught.value)


@pytest.fixture
def started() -> Iterator[list[Any]]:
    """Queries that are stopped at the end."""
    queries: list[Any] = []
    yield queries
    for query in queries:
        query.stop()


@pytest.mark.every_spark
def test_a_stream_runs_through_four_changes_without_a_restart_and_loses_no_row(
    cluster: InProcessCluster,
    read: Callable[..., Any],
    read_stream: Callable[..., Any],
    alter: Callable[..., int],
    started: list[Any],
    tmp_path: Path,
) -> None:
    source, target = "evolution-source", "evolution-target"
    cluster.create_topic(source, schema="id bigint NOT NULL, mag float, gone string", key="id", partitions=2)
    cluster.create_topic(target, schema="id bigint, mag float, gone string, at bigint")
    frame = read_stream(source, startingOffsets="earliest").selectExpr("id", "mag", "gone", "id * 2 as at")
    query = (
        frame.writeStream.format("sparklog")
        .options(**{"bootstrap.servers": cluster.bootstrap_servers, "topic": target})
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    started.append(query)
    changes = [
        ((), (), {}),
        (("add-column note string", "rename-column mag=size"), ("rename-column mag=size",), {"note": ["n"]}),
        (("drop-column gone",), ("drop-column gone", "add-column gone int"), {}),
        (("rename-column size=mag", "add-column size int"), ("rename-column size=tmp",), {}),
        (
            ("drop-not-null id", "add-column gone string"),
            ("rename-column at=size", "rename-column tmp=at"),
            {},
        ),
    ]
    names = ["mag", "size", "size", "mag", "mag"]
    for nth, (of_source, of_target, more) in enumerate(changes):
        if of_source:
            assert alter(source, *of_source) == alter(target, *of_target) == nth + 1
        rows = {"id": [nth * 2, nth * 2 + 1], names[nth]: pa.array([nth, 0.5], pa.float32())}
        cluster.produce(source, pa.table({**rows, **{name: value * 2 for name, value in more.items()}}))
        query.processAllAvailable()
        assert query.isActive
    expected = [(nth * 2 + k, (nth, 0.5)[k]) for nth in range(5) for k in (0, 1)]
    found = read(target).orderBy("id")
    assert ddl_of(cluster, target) == "id bigint, at float, size bigint, gone int"
    assert [tuple(row) for row in found.collect()] == [(id_, mag, id_ * 2, None) for id_, mag in expected]


def test_a_query_that_was_planned_keeps_its_columns_and_one_that_starts_has_the_new_ones(
    cluster: InProcessCluster, read: Callable[..., Any], alter: Callable[..., int]
) -> None:
    topic = "evolution-planned"
    cluster.create_topic(topic, schema="id int, mag float, gone string, s struct<a: int, b: int>")
    cluster.produce(
        topic,
        pa.table(
            {
                "id": pa.array([1], pa.int32()),
                "mag": FLOAT,
                "gone": ["x"],
                "s": pa.array([{"a": 1, "b": 2}], pa.struct([("a", pa.int32()), ("b", pa.int32())])),
            }
        ),
    )
    early = read(topic)
    early.count()  # planned
    alter(
        topic,
        "rename-column mag=size",
        "drop-column gone",
        "add-column gone int",
        "drop-column s.a",
        "add-column s.c string",
        "widen-column size double",
    )
    cluster.produce(
        topic,
        pa.table(
            {
                "id": pa.array([2], pa.int32()),
                "size": [0.25],
                "gone": pa.array([7], pa.int32()),
                "s": pa.array([{"b": 3, "c": "c"}], pa.struct([("b", pa.int32()), ("c", pa.string())])),
            }
        ),
    )
    assert sorted(map(tuple, early.collect())) == [(1, 0.5, "x", (1, 2)), (2, 0.25, None, (None, 3))]
    late = read(topic)
    assert late.dtypes == [
        ("id", "int"), ("size", "double"), ("s", "struct<b:int,c:string>"), ("gone", "int"),
    ]  # fmt: skip
    assert sorted(map(tuple, late.collect())) == [(1, 0.5, (2, None), None), (2, 0.25, (3, "c"), 7)]


@pytest.mark.proof
def test_a_value_that_a_running_query_cannot_hold_fails_it_with_column_and_value(
    cluster: InProcessCluster,
    read_stream: Callable[..., Any],
    alter: Callable[..., int],
    started: list[Any],
    tmp_path: Path,
) -> None:
    topic = "evolution-narrow"
    cluster.create_topic(topic, schema="id int")
    stream = read_stream(topic, startingOffsets="earliest")

    def start() -> Any:
        query = stream.writeStream.format("memory").queryName("narrow").start()
        started.append(query)
        return query

    query = start()
    query.processAllAvailable()  # it is planned
    alter(topic, "widen-column id bigint")
    cluster.produce(topic, pa.table({"id": [7]}))
    query.processAllAvailable()
    cluster.produce(topic, pa.table({"id": [2**40]}))
    told = refused(query.processAllAvailable)
    assert "column id has the value 1099511627776, which int cannot hold" in told
    assert "restart the query" in told
    again = (
        read_stream(topic, startingOffsets="earliest")
        .writeStream.format("memory")
        .queryName("wide")
        .trigger(availableNow=True)
        .start()
    )
    started.append(again)
    again.awaitTermination()
    spark = stream.sparkSession
    assert sorted(row.id for row in spark.table("narrow").collect()) == [7]
    assert sorted(row.id for row in spark.table("wide").collect()) == [7, 2**40]


def test_a_frame_that_was_loaded_before_a_change_is_loaded_again(
    cluster: InProcessCluster, read: Callable[..., Any], alter: Callable[..., int]
) -> None:
    topic = "evolution-loaded"
    cluster.create_topic(topic, schema="id int, x int")
    early = read(topic)
    alter(topic, "drop-column x")
    assert "no column x in topic 'evolution-loaded', which has id" in refused(early.collect)


@pytest.mark.proof
def test_merge_schema_adds_the_frames_columns_and_widens(
    spark: Any, cluster: InProcessCluster, append: Callable[..., None], read: Callable[..., Any]
) -> None:
    topic = "evolution-merged"
    cluster.create_topic(topic, schema="id int NOT NULL, s struct<a: int>, l array<struct<x: float>>")
    frame = spark.sql(
        "select 1L as id, named_struct('a', 1S, 'b', 'b') as s, array(named_struct('x', 1D)) as l, "
        "'n' as note"
    )
    assert "column note is not among the topic's" in refused(lambda: append(frame, topic))
    append(frame, topic, mergeSchema="true")
    merged = "id bigint NOT NULL, s struct<a: int, b: string>, l array<struct<x: double>>, note string"
    assert ddl_of(cluster, topic) == merged
    append(frame, topic, mergeSchema="true")
    append(spark.sql("select 2 as id"), topic, mergeSchema="true")
    assert describe_schemas(cluster.client, [topic])[topic].version == 2
    assert sorted(tuple(row) for row in read(topic).select("id", "s", "note").collect()) == [
        (1, (1, "b"), "n"),
        (1, (1, "b"), "n"),
        (2, None, None),
    ]
    for sql, words in [
        ("select 'x' as id", "column id is string and bigint in the topic"),
        ("select 1 as id, 2 as Note", "column Note: there is note already"),
    ]:
        assert words in refused(lambda sql=sql: append(spark.sql(sql), topic, mergeSchema="true"))
    cluster.create_topic("evolution-untyped")
    value = spark.sql("select 'x' as value")
    told = refused(lambda: append(value, "evolution-untyped", mergeSchema="true"))
    assert "topic 'evolution-untyped' is untyped, and has no columns to merge" in told


@pytest.mark.proof
def test_a_stream_merges_its_columns_and_goes_on_while_they_are_renamed(
    spark: Any,
    cluster: InProcessCluster,
    read: Callable[..., Any],
    read_stream: Callable[..., Any],
    alter: Callable[..., int],
    started: list[Any],
    tmp_path: Path,
) -> None:
    source, target = "evolution-merging", "evolution-merged-stream"
    cluster.create_topic(source, schema="id int, mag double")
    cluster.create_topic(target, schema="id int")
    query = (
        read_stream(source, startingOffsets="earliest")
        .writeStream.format("sparklog")
        .options(**{"bootstrap.servers": cluster.bootstrap_servers, "topic": target, "mergeSchema": "true"})
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    started.append(query)
    for nth in range(3):
        cluster.produce(source, pa.table({"id": pa.array([nth], pa.int32()), "mag": [nth / 2]}))
        query.processAllAvailable()
        if nth == 0:
            assert ddl_of(cluster, target) == "id int, mag double"
            alter(target, "rename-column mag=size")
    assert [tuple(row) for row in read(target).orderBy("id").collect()] == [(0, 0.0), (1, 0.5), (2, 1.0)]
    assert ddl_of(cluster, target) == "id int, size double"
