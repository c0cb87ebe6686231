"""Batch reads and writes through a real Spark and a real cluster, by the Kafka connector's rules."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

import pyspark_sparklog
from sparklog.client.partitioning.partitioner import partition_for_key
from sparklog.testing import InProcessCluster
from sparklog_datasource.rows.form import RowForm, row_type

pytestmark = pytest.mark.integration

Frames = Callable[..., Any]
Append = Callable[..., None]


def texts(frame: Any) -> list[str]:
    """The values in order of partition and offset."""
    rows = frame.orderBy("topic", "partition", "offset").select("value").collect()
    return [bytes(row.value).decode() for row in rows]


@pytest.mark.every_spark
def test_rows_come_back_as_they_were_written(
    cluster: InProcessCluster, spark: Any, read: Frames, append: Append
) -> None:
    cluster.create_topic("roundtrip", partitions=3)
    before_ms = time.time_ns() // 1_000_000
    frame = spark.range(2_000).selectExpr("concat('k', id) key", "concat('v', id) value")
    append(frame, "roundtrip")
    back = read("roundtrip")
    assert back.schema == row_type(RowForm())
    rows = back.selectExpr("string(key) k", "string(value) v", "*").collect()
    assert sorted((row.k, row.v) for row in rows) == sorted((f"k{i}", f"v{i}") for i in range(2_000))
    assert {row.topic for row in rows} == {"roundtrip"}
    assert {row.timestampType for row in rows} == {0}
    assert all(row.partition == partition_for_key(bytes(row.key), 3) for row in rows)
    for number in range(3):
        assert sorted(r.offset for r in rows if r.partition == number) == list(
            range(sum(r.partition == number for r in rows))
        )
    (span,) = back.selectExpr("unix_millis(min(timestamp)) a", "unix_millis(max(timestamp)) b").collect()
    assert before_ms <= span.a <= span.b <= time.time_ns() // 1_000_000


@pytest.mark.every_spark
def test_nulls_empties_and_headers_are_told_apart(spark: Any, read: Frames, append: Append) -> None:
    frame = spark.sql(
        """select 'k' key, 'v' value, array(named_struct('key', 'a', 'value', cast('1' as binary)),
               named_struct('key', 'a', 'value', cast(null as binary))) headers, 0 partition
           union all select null, null, null, 0
           union all select '', '', array(), 0"""
    ).coalesce(1)
    append(frame, "headers")
    rows = (
        read("headers", includeHeaders="true").orderBy("offset").select("key", "value", "headers").collect()
    )
    found = [(row.key, row.value, row.headers and [tuple(header) for header in row.headers]) for row in rows]
    assert found == [
        (b"k", b"v", [("a", b"1"), ("a", None)]),
        (None, None, None),
        (b"", b"", None),
    ]


def test_rows_that_were_read_can_be_written_to_where_they_came_from(
    cluster: InProcessCluster, values: Frames, read: Frames, append: Append
) -> None:
    cluster.create_topic("again", partitions=2)
    append(values("a", "b", "c"), "again")
    append(read("again"))
    assert sorted(texts(read("again"))) == ["a", "a", "b", "b", "c", "c"]


@pytest.mark.every_spark
def test_topic_and_partition_columns_decide_where_rows_go(
    cluster: InProcessCluster, spark: Any, read: Frames, append: Append
) -> None:
    for topic in ("column-a", "column-b"):
        cluster.create_topic(topic, partitions=3)
    frame = spark.sql(
        """select 'column-a' topic, '1' value, 2 partition, 'k' key
           union all select 'column-b', '2', 0, 'k' union all select 'column-a', '3', null, 'k'"""
    )
    append(frame)
    rows = read(subscribePattern="^column-").selectExpr("topic", "string(value) v", "partition").collect()
    assert sorted(tuple(row) for row in rows) == sorted(
        [("column-a", "1", 2), ("column-b", "2", 0), ("column-a", "3", partition_for_key(b"k", 3))]
    )


@pytest.mark.every_spark
def test_an_action_sees_what_was_written_after_the_dataframe_was_made(
    values: Frames, read: Frames, append: Append, cluster: InProcessCluster
) -> None:
    append(values("a"), "late-1")
    frame = read(subscribePattern="^late-")
    assert frame.count() == 1
    append(values("b", "c"), "late-1")
    assert frame.count() == 3
    cluster.create_topic("late-2", partitions=2)
    append(values("d"), "late-2")
    assert sorted(texts(frame)) == ["a", "b", "c", "d"]


def test_a_pattern_without_topics_is_an_empty_frame(read: Frames) -> None:
    assert read(subscribePattern="^nothing-is-called-so").count() == 0


@pytest.mark.every_spark
def test_offsets_bound_a_read(
    values: Frames, read: Frames, append: Append, cluster: InProcessCluster
) -> None:
    cluster.create_topic("bounds")
    append(values(*"abcdef").coalesce(1), "bounds")

    def bounded(**offsets: int) -> list[str]:
        options = {name: json.dumps({"bounds": {"0": offset}}) for name, offset in offsets.items()}
        return texts(read("bounds", **options))

    assert bounded(startingOffsets=2, endingOffsets=4) == ["c", "d"]
    assert bounded(startingOffsets=-2, endingOffsets=-1) == list("abcdef")
    assert bounded(startingOffsets=6) == []
    for backward in ({"startingOffsets": 4, "endingOffsets": 2}, {"startingOffsets": 9}):
        with pytest.raises(Exception, match="is greater than its end offset"):
            bounded(**backward)
    with pytest.raises(
        Exception, match=r"bounds-0: 92 offsets are lost.*ending offset 99 is beyond the end of the log, 7"
    ):
        bounded(endingOffsets=99)
    lenient = read("bounds", endingOffsets='{"bounds":{"0":99}}', failOnDataLoss="false")
    assert texts(lenient) == list("abcdef")


@pytest.mark.every_spark
def test_timestamps_bound_a_read(
    values: Frames, read: Frames, append: Append, cluster: InProcessCluster
) -> None:
    cluster.create_topic("times")
    append(values("early"), "times")
    middle_ms = time.time_ns() // 1_000_000 + 1
    while time.time_ns() // 1_000_000 <= middle_ms:
        time.sleep(0.001)
    append(values("late"), "times")
    middle = str(middle_ms)
    assert texts(read("times", startingTimestamp=middle)) == ["late"]
    assert texts(read("times", endingTimestamp=middle)) == ["early"]
    per_partition = json.dumps({"times": {"0": middle_ms}})
    assert texts(read("times", startingOffsetsByTimestamp=per_partition)) == ["late"]
    never = str(middle_ms + 3_600_000)
    assert texts(read("times", endingTimestamp=never)) == ["early", "late"]
    assert texts(read("times", startingTimestamp=never, startingOffsetsByTimestampStrategy="latest")) == []
    with pytest.raises(Exception, match="no offset matched"):
        read("times", startingTimestamp=never).count()


@pytest.mark.every_spark
def test_a_read_is_split_as_asked_for_and_loses_nothing(
    cluster: InProcessCluster, spark: Any, read: Frames, append: Append
) -> None:
    cluster.create_topic("split", partitions=2)
    append(spark.range(1_000).selectExpr("string(id) key", "string(id) value"), "split")
    at_least = read("split", minPartitions="6")
    assert at_least.rdd.getNumPartitions() == 6
    assert read("split", maxRecordsPerPartition="100").rdd.getNumPartitions() >= 10
    append(spark.range(1_000, 1_100).selectExpr("string(id) value"), "split")
    assert sorted(map(int, texts(at_least))) == list(range(1_100))


def test_assigned_partitions_only(
    cluster: InProcessCluster, spark: Any, read: Frames, append: Append
) -> None:
    cluster.create_topic("assigned", partitions=3)
    append(spark.range(3).selectExpr("string(id) value", "int(id) partition"), "assigned")
    assert texts(read(assign='{"assigned":[0,2]}')) == ["0", "2"]


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_kafka_clients_read_what_spark_wrote_and_spark_what_they_wrote(
    codec: str, cluster: InProcessCluster, spark: Any, read: Frames, append: Append
) -> None:
    topic = f"mixed-{codec}"
    cluster.create_topic(topic)
    append(spark.range(50).selectExpr("string(id) key", "string(id) value").coalesce(1), topic,
           **{"kafka.compression.type": codec})  # fmt: skip
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "compression.type": codec})
    for i in range(50, 100):
        producer.produce(topic, value=str(i), headers=[("h", b"x")])
    assert producer.flush(30) == 0
    assert texts(read(topic)) == [str(i) for i in range(100)]
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic, "enable.auto.commit": False}
    )
    assert consumed(consumer, topic, 100) == [str(i) for i in range(100)]
    headers = read(topic, includeHeaders="true").orderBy("offset").select("headers").collect()
    assert [row.headers is None for row in headers] == [True] * 50 + [False] * 50


def consumed(consumer: Consumer, topic: str, count: int) -> list[str]:
    from confluent_kafka import OFFSET_BEGINNING, TopicPartition

    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[str] = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append(message.value().decode())
    consumer.close()
    return found


@pytest.mark.every_spark
def test_large_data_is_written_in_batches_that_the_topic_takes(
    cluster: InProcessCluster, spark: Any, read: Frames, append: Append
) -> None:
    cluster.create_topic("large", partitions=2, configs={"max.message.bytes": "100000"})
    append(spark.range(20_000).selectExpr("string(id) key", "repeat('x', 500) value"), "large")
    assert read("large").selectExpr("count(distinct key) keys", "sum(length(value)) bytes").first() == (
        20_000,
        20_000 * 500,
    )


@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (["id value"], {}, "column 'value' has type bigint, but it must be binary or string"),
        (["string(id) key"], {}, "required column 'value' not found"),
        (["string(id) value", "id partition"], {}, "column 'partition' has type bigint"),
        (["string(id) value"], {"topicc": "t"}, "unknown option 'topicc'.*did you mean topic"),
        (["string(id) value", "int(id + 1) partition"], {}, "column 'partition' names partition"),
        (["repeat('x', 2000000) value"], {}, r"a row takes 20\d+ bytes.*max.message.bytes"),
        (["string(id) value"], {"kafka.key.serializer": "x"}, "'kafka.key.serializer' is not supported"),
    ],
)
def test_what_cannot_be_written_fails_with_the_reason_and_nothing_is_written(
    columns: list[str],
    options: dict[str, str],
    message: str,
    cluster: InProcessCluster,
    spark: Any,
    read: Frames,
    append: Append,
) -> None:
    ensure_topic(cluster, "refused")
    with pytest.raises(Exception, match=message):
        append(spark.range(1).selectExpr(*columns), "refused", **options)
    assert read("refused").count() == 0


def ensure_topic(cluster: InProcessCluster, name: str) -> None:
    if name not in cluster.admin.list_topics():
        cluster.create_topic(name)


@pytest.mark.every_spark
def test_a_log_is_not_overwritten(values: Frames, append: Append) -> None:
    with pytest.raises(Exception, match="save mode overwrite is not allowed"):
        append(values("a"), "t", mode="overwrite")


@pytest.mark.proof
@pytest.mark.every_spark
def test_rows_need_a_topic(values: Frames, append: Append) -> None:
    with pytest.raises(Exception, match="'topic' not found among value"):
        append(values("a"))
    with pytest.raises(Exception, match="null topic present in the data"):
        append(values("a").selectExpr("value", "string(null) topic"))


@pytest.mark.proof
@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "no-such-topic"}, "there is no topic 'no-such-topic'"),
        (
            {},
            "one of the following options must be specified for a read: assign, subscribe, subscribePattern",
        ),
        (
            {"subscribe": "t", "assign": '{"t":[0]}'},
            "only one of assign, subscribe, subscribePattern may be set; found assign and subscribe",
        ),
        (
            {
                "subscribe": "t",
                "startingOffsets": '{"t":{"0":1}}',
                "endingOffsets": '{"t":{"1":1}}',
            },
            "startingOffsets and endingOffsets must name the same topic-partitions",
        ),
        ({"subscribe": "t", "startingOfset": "earliest"}, "did you mean startingOffsets"),
        ({"subscribe": "t", "startingOffsets": "latest"}, "starting offset can't be latest for batch"),
    ],
)
def test_what_cannot_be_read_fails_with_the_reason(
    options: dict[str, str], message: str, read: Frames
) -> None:
    with pytest.raises(Exception, match=message):
        read(**options).count()


@pytest.mark.every_spark
def test_a_schema_of_other_columns_is_refused(spark: Any, cluster: InProcessCluster) -> None:
    reader = spark.read.format("sparklog").option("bootstrap.servers", cluster.bootstrap_servers)
    with pytest.raises(Exception, match="no column a in a topic that is not there yet, which has key, value"):
        reader.option("subscribe", "t").schema("a int").load().count()


@pytest.mark.every_spark
def test_a_new_thread_writes_once_the_source_is_registered_in_it(
    spark: Any, values: Frames, read: Frames, append: Append
) -> None:
    frame = values("from a thread")
    failures: list[Exception] = []

    def write() -> None:
        try:
            pyspark_sparklog.register(spark)
            append(frame, "threads")
        except Exception as error:  # noqa: BLE001 (for the test's own thread to show)
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert failures == []
    assert texts(read("threads")) == ["from a thread"]
