"""Typed topics through Spark: rows in, rows out, with every type, in batches, streams and SQL."""

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.errors import PySparkException
from pyspark.sql import functions

from sparklog.client.partitioning.partitioner import partition_for_key
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.schema.data_types import DataType, Map, Scalar, parts_of
from sparklog.model.schema.ddl_text import ddl_text
from sparklog.testing import InProcessCluster
from sparklog_datasource.rows.typed_form import TypedForm, typed_row_type
from tests.datasource.test_spark_types import AS_TEXT, VALUES
from tests.records.arrow.typed_strategies import tables

pytestmark = [pytest.mark.integration, pytest.mark.every_spark]

_numbers = itertools.count()
TYPES = [kind for kind in VALUES if kind != "variant"]


def ddl_of(cluster: InProcessCluster, topic: str) -> str:
    document = describe_schemas(cluster.client, [topic])[topic]
    return ddl_text(document.at(document.version))


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(PySparkException) as caught:
        action()
    return str(caught.value)


def test_every_type_comes_back_equal(
    spark: Any, cluster: InProcessCluster, append: Callable[..., None], read: Callable[..., Any]
) -> None:
    columns = [f"cast({{}} as {kind}) c{nth}" for nth, kind in enumerate(TYPES)]
    rows = [
        "select "
        + ", ".join(column.format(value or "null") for column, value in zip(columns, values, strict=True))
        for values in itertools.zip_longest(*([*VALUES[kind], ""] for kind in TYPES), fillvalue="")
    ]
    frame = spark.sql(" union all ".join(rows))
    append(frame, "spark-typed-types", createTopic="typed")
    found = read("spark-typed-types")
    assert found.dtypes == frame.dtypes
    assert all(field.nullable for field in found.schema)
    texts = [re.sub(r"\bc\b", f"c{nth}", AS_TEXT.get(kind, "string(c)")) for nth, kind in enumerate(TYPES)]
    seen, expected = (sorted(map(str, each.selectExpr(*texts).collect())) for each in (found, frame))
    assert seen == expected


@settings(
    max_examples=20,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(drawn=tables())
def test_drawn_rows_of_drawn_columns_come_back_equal_and_so_does_their_json(
    drawn: tuple[Any, pa.RecordBatch],
    spark: Any,
    cluster: InProcessCluster,
    append: Callable[..., None],
    read: Callable[..., Any],
) -> None:
    topic = f"spark-typed-drawn-{next(_numbers)}"
    columns, table = drawn[0].newest.columns, pa.Table.from_batches([drawn[1]])
    row_type = typed_row_type(TypedForm.whole(columns))
    append(spark.createDataFrame(table, row_type), topic, createTopic="typed")
    found = read(topic).toArrow()
    assert found.schema.names == table.schema.names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, table.to_pylist()))
    readable = tuple(column for column in columns if not has_other_keys(column.type))
    if readable:
        parsed = from_json(spark, cluster, topic, ddl_text(readable)).toArrow()
        expected = table.select(parsed.schema.names)
        assert sorted(map(repr, parsed.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def has_other_keys(data_type: DataType) -> bool:
    """Whether there is a map whose keys are no strings, which ``from_json`` refuses."""
    own = isinstance(data_type, Map) and data_type.key != Scalar("string")
    return own or any(has_other_keys(part) for _, part in parts_of(data_type))


def from_json(spark: Any, cluster: InProcessCluster, topic: str, ddl: str) -> Any:
    """Columns of the JSON that Kafka's clients get."""
    texts = [record.value.decode() for record in cluster.consume(topic) if record.value is not None]
    frame = spark.createDataFrame(pa.table({"value": pa.array(texts, pa.string())}))
    return frame.select(functions.from_json("value", ddl).alias("row")).select("row.*")


def test_years_of_every_length_are_read_out_of_json(
    spark: Any, cluster: InProcessCluster, append: Callable[..., None], read: Callable[..., Any]
) -> None:
    topic = "spark-typed-years"
    years = [-290307, -32769, -1, 0, 1, 1581, 1883, 9999, 10_000, 32_768, 294_246]
    frame = (
        spark.createDataFrame([(year,) for year in years], "y int")
        .selectExpr(
            "y", "make_date(y, 2, 28) as day", "make_timestamp_ntz(y, 2, 28, 23, 59, 59.999999) as local"
        )
        .selectExpr("*", "timestamp_micros(0) + (local - timestamp_ntz '1970-01-01 00:00:00') as at")
    )
    append(frame, topic, createTopic="typed")
    found = from_json(spark, cluster, topic, ddl_of(cluster, topic)).selectExpr(
        "y", "unix_date(day)", "string(local)", "unix_micros(at)"
    )
    expected = read(topic).selectExpr("y", "unix_date(day)", "string(local)", "unix_micros(at)")
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, expected.collect()))


def test_a_topic_is_made_with_the_frames_columns_and_later_writes_fit(
    spark: Any, cluster: InProcessCluster, append: Callable[..., None], read: Callable[..., Any]
) -> None:
    topic = "spark-typed-made"
    frame = spark.range(9).selectExpr("id", "id / 2 as mag", "timestamp_millis(id * 1000) as at")
    made = {"partitions": "3", "replicationFactor": "2", "key": "id", "timestamp": "at"}
    append(frame, topic, createTopic="typed", **{f"createTopic.{name}": text for name, text in made.items()})
    assert ddl_of(cluster, topic) == "id bigint, mag double, at timestamp"
    assert cluster.client.topic(topic).replication_factor == 2
    append(spark.range(9, 10).selectExpr("cast(id as int) as id", "null as mag"), topic)
    append(spark.sql("select 10L as id"), topic, createTopic="typed")
    places = read(topic, includeMetadata="true")
    assert places.columns == ["id", "mag", "at", "_topic", "_partition", "_offset", "_timestamp"]
    for row in places.collect():
        assert row["_partition"] == partition_for_key(str(row["id"]).encode(), 3)
        assert (row["_topic"], row["id"] > 8 or row["_timestamp"] == row["at"]) == (topic, True)
    assert [tuple(row)[:2] for row in read(topic).orderBy("id").collect()] == [
        *((n, n / 2) for n in range(9)),
        (9, None),
        (10, None),
    ]


@pytest.mark.proof
def test_what_does_not_fit_is_refused_before_a_row_is_written(
    spark: Any, cluster: InProcessCluster, append: Callable[..., None], read: Callable[..., Any]
) -> None:
    topic = "spark-typed-refused"
    cluster.create_topic(topic, schema="id bigint NOT NULL, mag double")
    cluster.create_topic("spark-untyped-refused")
    sql = spark.sql
    for frame, options, words in [
        (sql("select 1L as id, 1 as extra"), {}, "column extra is not among the topic's"),
        (sql("select 1L as id, 1D as Mag"), {}, "column Mag (near mag) is not among the topic's"),
        (sql("select 'x' as id"), {}, "column id is string and bigint in the topic"),
        (sql("select 1D as mag"), {}, "column id is NOT NULL in the topic"),
        (sql("select 1L as id, parse_json('1') as mag"), {}, "variant"),
        (
            spark.range(8).selectExpr("if(id = 7, null, id) as id"),
            {},
            "column id is NOT NULL in the topic, and null in 1 of",
        ),
        (sql("select 1L as id"), {"createTopic": "untyped"}, "must be one of typed"),
        (sql("select 1L as id"), {"createTopic.key": "id"}, "option createTopic.key needs createTopic=typed"),
    ]:
        assert words in refused(lambda frame=frame, options=options: append(frame, topic, **options))
    assert read(topic).count() == 0
    for name, options, words in [
        ("spark-typed-nowhere", {}, "set option createTopic=typed, which makes a topic"),
        ("spark-untyped-refused", {"createTopic": "typed"}, "and it is untyped for ever"),
    ]:
        assert words in refused(lambda name=name, options=options: append(spark.range(1), name, **options))
    assert "spark-typed-nowhere" not in cluster.client.metadata(None, max_age_ms=0).topics
    named = spark.sql(f"select 'x' as value, '{topic}' as topic")
    assert "is typed, and column 'topic' names it" in refused(lambda: append(named))


@pytest.mark.proof
def test_reads_of_topics_that_do_not_go_together_are_refused(
    cluster: InProcessCluster, read: Callable[..., Any]
) -> None:
    cluster.create_topic("spark-typed-one", schema="id bigint")
    cluster.create_topic("spark-typed-two", schema="id int")
    cluster.create_topic("spark-typed-like", schema="id bigint NOT NULL COMMENT 'x'")
    cluster.create_topic("spark-untyped-one")
    one = "spark-typed-one"
    assert "is typed and topic 'spark-untyped-one' is not" in refused(
        lambda: read(f"{one},spark-untyped-one")
    )
    assert "have different columns" in refused(lambda: read(f"{one},spark-typed-two"))
    assert "are for untyped topics" in refused(lambda: read(one, includeHeaders="true"))
    assert "includeMetadata is for typed topics" in refused(
        lambda: read("spark-untyped-one", includeMetadata="true")
    )
    cluster.produce(one, pa.table({"id": [1]}))
    cluster.produce("spark-typed-like", pa.table({"id": [2]}))
    assert sorted(row.id for row in read(f"{one},spark-typed-like").collect()) == [1, 2]


def test_a_topic_that_is_made_after_load_is_loaded_again(
    cluster: InProcessCluster, read: Callable[..., Any]
) -> None:
    early = read("spark-typed-later")
    assert early.columns[:2] == ["key", "value"]
    cluster.create_topic("spark-typed-later", schema="id bigint")
    cluster.produce("spark-typed-later", pa.table({"id": [1]}))
    assert "is typed" in refused(early.collect)
    assert read("spark-typed-later").collect()[0].id == 1


def test_streams_copy_rows_exactly_once_and_make_their_topic(
    spark: Any,
    cluster: InProcessCluster,
    read: Callable[..., Any],
    read_stream: Callable[..., Any],
    tmp_path: Path,
) -> None:
    cluster.create_topic("spark-typed-source", schema="id bigint, mag double", key="id", partitions=2)
    for start in (0, 100):
        cluster.produce(
            "spark-typed-source",
            pa.table({"id": pa.array(range(start, start + 100), pa.int64()), "mag": [0.5] * 100}),
        )
        query = (
            read_stream("spark-typed-source", startingOffsets="earliest", maxOffsetsPerTrigger="30")
            .selectExpr("id", "mag * 2 as mag")
            .writeStream.format("sparklog")
            .option("bootstrap.servers", cluster.bootstrap_servers)
            .option("topic", "spark-typed-copy")
            .option("createTopic", "typed")
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert [tuple(row) for row in read("spark-typed-copy").orderBy("id").collect()] == [
        (n, 1.0) for n in range(200)
    ]


def test_sql_reads_and_writes_through_a_view(spark: Any, cluster: InProcessCluster) -> None:
    cluster.create_topic("spark-typed-sql", schema="id bigint, mag double, note string")
    spark.sql(
        f"create temporary view typed_quakes using sparklog options (`bootstrap.servers` "
        f"'{cluster.bootstrap_servers}', subscribe 'spark-typed-sql', topic 'spark-typed-sql')"
    )
    spark.sql("insert into typed_quakes (id, mag) values (1, 2.5), (2, null)")
    assert [tuple(row) for row in spark.sql("select * from typed_quakes order by id").collect()] == [
        (1, 2.5, None),
        (2, None, None),
    ]


def test_bytes_per_task_and_time_bounds_are_those_of_any_topic(
    cluster: InProcessCluster, read: Callable[..., Any]
) -> None:
    cluster.create_topic("spark-typed-bounds", schema="id bigint, at timestamp", timestamp="at")
    rows = pa.table(
        {"id": range(50), "at": pa.array([n * 1_000_000 for n in range(50)], pa.timestamp("us", "UTC"))}
    )
    cluster.produce("spark-typed-bounds", rows)
    assert read("spark-typed-bounds", startingTimestamp="40000").count() == 10
    assert read("spark-typed-bounds", bytesPerTask="64k").count() == 50
    cut = '{"spark-typed-bounds": {"0": 7}}'
    assert [row.id for row in read("spark-typed-bounds", endingOffsets=cut).collect()] == list(range(7))
