"""SQL over topics: views, tables and INSERT, as far as Spark lets a Python data source have them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from sparklog.testing import InProcessCluster
from tests.datasource.queries import Batches, run

pytestmark = [pytest.mark.integration, pytest.mark.every_spark]

Sql = Callable[[str], Any]
PLACE = "cast(null as binary) key, cast('{value}' as binary) value, string(null) topic, 0 partition, "
REST = "bigint(0) offset, timestamp(null) timestamp, 0 timestampType"


@pytest.fixture
def servers(cluster: InProcessCluster) -> str:
    return cluster.bootstrap_servers


@pytest.fixture
def sql(spark: Any) -> Iterator[Sql]:
    """Runs a statement; drops the tables and views of the test at its end."""
    yield lambda statement: spark.sql(statement)
    for table in spark.catalog.listTables():
        spark.sql(f"drop {'view' if table.isTemporary else 'table'} {table.name}")


def values(cluster: InProcessCluster, topic: str, count: int) -> list[str]:
    """What a client of Kafka's protocol finds in the topic."""
    return sorted((record.value or b"").decode() for record in cluster.consume(topic, at_least=count))


def test_a_temporary_view_is_read_and_inserted_into(
    cluster: InProcessCluster, servers: str, sql: Sql
) -> None:
    for topic in ("view-in", "view-out"):
        cluster.create_topic(topic)
    cluster.produce("view-in", ["a", "b"])
    sql(f"create temporary view source using sparklog options (bootstrap.servers '{servers}', "
        "subscribe 'view-in', startingOffsets 'earliest')")  # fmt: skip
    sql(f"create temporary view both using sparklog options (bootstrap.servers '{servers}', "
        "subscribe 'view-out', topic 'view-out', failOnDataLoss 'false', kafka.acks 'all')")  # fmt: skip
    sql("insert into both select * from source where string(value) = 'a'")
    sql("insert into both (value) values (cast('c' as binary))")
    sql("insert into both by name select cast('d' as binary) value")
    assert values(cluster, "view-out", 3) == ["a", "c", "d"]
    rows = sql("select string(value) v, topic from both order by offset").collect()
    assert [(row.v, row.topic) for row in rows] == [("a", "view-out"), ("c", "view-out"), ("d", "view-out")]


def test_headers_are_inserted_into_a_view_that_includes_them(
    cluster: InProcessCluster, servers: str, sql: Sql
) -> None:
    cluster.create_topic("view-headers")
    sql(f"create temporary view with_headers using sparklog options (bootstrap.servers '{servers}', "
        "subscribe 'view-headers', topic 'view-headers', includeHeaders 'true')")  # fmt: skip
    sql("insert into with_headers (value, headers) values (cast('v' as binary), "
        "array(named_struct('key', 'h', 'value', cast('x' as binary))))")  # fmt: skip
    (row,) = sql("select headers from with_headers").collect()
    assert [tuple(header) for header in row.headers] == [("h", b"x")]


def test_dataframes_are_appended_to_a_view(
    cluster: InProcessCluster, servers: str, sql: Sql, spark: Any
) -> None:
    cluster.create_topic("view-append")
    sql(f"create temporary view appended using sparklog options (bootstrap.servers '{servers}', "
        "subscribe 'view-append', topic 'view-append')")  # fmt: skip
    sql("select cast('a' as binary) value").writeTo("appended").append()
    spark.sql(f"select {PLACE.format(value='b')}{REST}").write.insertInto("appended")
    assert values(cluster, "view-append", 2) == ["a", "b"]


@pytest.fixture
def options(servers: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers, "subscribe": "in-table", "topic": "in-table"}


def test_a_table_is_read_and_written_with_the_options_of_each_statement(
    cluster: InProcessCluster, options: dict[str, str], sql: Sql, spark: Any, tmp_path: Path
) -> None:
    cluster.create_topic("in-table")
    sql("create table events using sparklog")
    assert "value" in spark.table("events").columns
    each = ", ".join(f"`{name}` = '{text}'" for name, text in options.items())
    sql(f"insert into events with ({each}) (value) values (cast('a' as binary))")
    frame = sql("select cast('b' as binary) value")
    frame.writeTo("events").options(**options).append()
    frame.write.format("sparklog").options(**options).mode("append").saveAsTable("events")
    assert values(cluster, "in-table", 3) == ["a", "b", "b"]
    found = sql(f"select string(value) v from events with ({each})").collect()
    assert sorted(row.v for row in found) == ["a", "b", "b"]
    assert spark.read.options(**options).table("events").count() == 3

    sink = Batches()
    stream = spark.readStream.options(**options, startingOffsets="earliest").table("events")
    run(stream, sink, tmp_path / "a")
    assert sorted(sink.all) == ["a", "b", "b"]
    writer = stream.writeStream.options(**options, checkpointLocation=str(tmp_path / "b"))
    query = writer.trigger(availableNow=True).toTable("events")
    assert query.awaitTermination(120)
    assert values(cluster, "in-table", 6) == ["a", "a", "b", "b", "b", "b"]


def test_save_as_table_makes_a_table_that_is_written_in_the_same_statement(
    cluster: InProcessCluster, options: dict[str, str], sql: Sql
) -> None:
    cluster.create_topic("new-table")
    frame = sql("select cast('a' as binary) value")
    frame.write.format("sparklog").options(**{**options, "topic": "new-table"}).saveAsTable("made")
    assert values(cluster, "new-table", 1) == ["a"]


def test_a_lasting_view_upon_a_table_keeps_the_options_of_its_statement(
    cluster: InProcessCluster, servers: str, sql: Sql, spark: Any
) -> None:
    cluster.create_topic("lasting")
    cluster.produce("lasting", ["a"])
    sql("create table logs using sparklog")
    sql(f"create view lasting as select string(value) value from logs with ("
        f"bootstrap.servers = '{servers}', subscribe = 'lasting')")  # fmt: skip
    try:
        assert [row.value for row in spark.newSession().sql("select value from lasting").collect()] == ["a"]
    finally:
        sql("drop view lasting")


def test_a_table_with_columns_of_text_is_read_as_text(
    cluster: InProcessCluster, servers: str, sql: Sql
) -> None:
    cluster.create_topic("text-table")
    cluster.produce("text-table", [("k", "v")])
    sql("create table as_text (key string, value string, topic string, partition int, offset bigint, "
        "timestamp timestamp, timestampType int) using sparklog")  # fmt: skip
    found = sql(f"select key, value from as_text with (bootstrap.servers = '{servers}', "
                "subscribe = 'text-table', keyFormat = 'string', valueFormat = 'string')")  # fmt: skip
    assert [tuple(row) for row in found.collect()] == [("k", "v")]


NO_OPTIONS_OF_TABLES = "a table of a catalog cannot have options"
OTHER_COLUMNS = "no column x in a topic that is not there yet"
NOT_HANDED_ON = "Spark hands the options of a catalog's table to no Python source: use a temporary view"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("create table made using sparklog options ({o})", NO_OPTIONS_OF_TABLES),
        ("create table made using sparklog tblproperties ('option.topic' = 't')", NO_OPTIONS_OF_TABLES),
        ("select * from foreign with (`bootstrap.servers` = '{servers}', subscribe = 't')", OTHER_COLUMNS),
        ("select * from refusing", NOT_HANDED_ON),
        ("insert into refusing (value) values (cast('a' as binary))", NOT_HANDED_ON),
        ("create table made using sparklog options ({o}) as select cast('a' as binary) value", NOT_HANDED_ON),
        ("insert into view_x (value) values ('text')", 'Cannot safely cast `value` "STRING" to "BINARY"'),
        ("insert overwrite view_x by name select cast('a' as binary) value", "overwrite is not allowed"),
        ("select * from sparklog.`t`", "Unsupported data source type for direct query on files: sparklog"),
    ],
)  # fmt: skip
def test_what_spark_does_not_let_a_python_source_have_is_refused_with_the_reason(
    statement: str, message: str, servers: str, sql: Sql
) -> None:
    o = f"bootstrap.servers '{servers}', subscribe 't', topic 't'"
    sql("create table refusing using sparklog")
    sql(f"create table foreign (x int) using sparklog options ({o})")
    sql(f"create temporary view view_x using sparklog options ({o})")
    with pytest.raises(PySparkException) as caught:
        sql(statement.format(o=o, servers=servers)).collect()
    assert message in str(caught.value)


def test_calls_that_spark_does_not_let_a_python_source_have_are_refused_with_the_reason(
    servers: str, sql: Sql, spark: Any
) -> None:
    options = f"options (bootstrap.servers '{servers}', subscribe 't', topic 't')"
    sql(f"create temporary view watched using sparklog {options}")
    sql("create table kept using sparklog")
    with pytest.raises(PySparkException, match="is not a temp view of streaming logical plan"):
        spark.readStream.table("watched")
    row = spark.sql(f"select {PLACE.format(value='b')}{REST}")
    with pytest.raises(PySparkException, match=NOT_HANDED_ON):
        row.write.insertInto("kept")
    write = row.write.format("sparklog").options(**{"bootstrap.servers": servers, "topic": "t"})
    with pytest.raises(PySparkException, match='cannot be written in the "ErrorIfExists" mode'):
        write.save()
