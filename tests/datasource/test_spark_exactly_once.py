"""Atomic writes of a real Spark: whole or not at all, and once, whatever fails or is run again."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

import pyspark_sparklog
from sparklog.client.isolation import IsolationLevel
from sparklog.client.offsets import latest
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.testing import InProcessCluster
from tests.waiting import until

pytestmark = pytest.mark.integration

Frames = Callable[..., Any]
Append = Callable[..., None]

RETRIED_WRITE = Path(__file__).with_name("retried_write.py")
WAIT_S = 120


def texts(frame: Any) -> list[str]:
    return sorted(bytes(row.value).decode() for row in frame.select("value").collect())


def nothing_is_open(cluster: InProcessCluster, topic: str, partitions: int) -> bool:
    places = [TopicPartition(topic, number) for number in range(partitions)]
    ends = [latest(cluster.client, places, level) for level in IsolationLevel]
    return ends[0] == ends[1]


@pytest.mark.every_spark
def test_a_write_is_there_once_it_has_returned_for_spark_and_for_kafka_s_clients(
    cluster: InProcessCluster, spark: Any, read: Frames, append: Append
) -> None:
    cluster.create_topic("atomic", partitions=3)
    append(spark.range(0, 5_000, 1, 4).selectExpr("string(id) value"), "atomic")
    expected = sorted(str(number) for number in range(5_000))
    assert texts(read("atomic")) == expected
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "atomic",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["atomic"])
    seen: list[str] = []
    until(lambda: len(seen.extend(m.value().decode() for m in consumer.consume(1_000, 0.2)) or seen) >= 5_000)
    consumer.close()
    assert sorted(seen) == expected


@pytest.mark.every_spark
def test_one_broker_is_enough_and_a_write_without_rows_asks_its_coordinator_nothing(
    spark: Any, values: Frames
) -> None:
    with InProcessCluster(brokers=1) as one:
        options = {"kafka.bootstrap.servers": one.bootstrap_servers, "topic": "alone", "subscribe": "alone"}
        one.create_topic("alone")
        values().write.format("sparklog").options(**options).mode("append").save()
        assert TRANSACTION_STATE_TOPIC not in one.admin.list_topics(include_internal=True)
        values("a").write.format("sparklog").options(**options).mode("append").save()
        assert TRANSACTION_STATE_TOPIC in one.admin.list_topics(include_internal=True)
        assert texts(spark.read.format("sparklog").options(**options).load()) == ["a"]


@pytest.mark.parametrize(
    "options", [{"delivery": "at-least-once"}, {"kafka.acks": "1"}, {"kafka.enable.idempotence": "false"}]
)
def test_a_write_that_asks_for_less_has_no_transaction(
    options: dict[str, str], cluster: InProcessCluster, values: Frames, append: Append
) -> None:
    topic = f"less-{next(iter(options))}"
    cluster.create_topic(topic)
    append(values("a", "b"), topic, **options)
    until(lambda: cluster.partitions(topic)[0].high_watermark == 2)


def test_a_write_whose_last_row_fails_leaves_nothing_behind(
    cluster: InProcessCluster, spark: Any, read: Frames, append: Append
) -> None:
    cluster.create_topic("failing", partitions=2)
    rows = spark.range(0, 50_000, 1, 2).selectExpr("if(id = 49999, raise_error('no'), string(id)) value")
    with pytest.raises(Exception, match="USER_RAISED_EXCEPTION"):
        append(rows, "failing")
    until(lambda: nothing_is_open(cluster, "failing", 2))
    assert texts(read("failing")) == []
    append(spark.range(3).selectExpr("string(id) value"), "failing")
    assert texts(read("failing")) == ["0", "1", "2"]


def test_a_version_is_written_once_and_an_earlier_one_not_at_all(
    cluster: InProcessCluster, values: Frames, read: Frames, append: Append
) -> None:
    cluster.create_topic("versions")
    for version, value in ((5, "five"), (5, "five again"), (4, "four"), (6, "six")):
        append(values(value), "versions", txnAppId="job", txnVersion=str(version))
    append(values("other"), "versions", txnAppId="other job", txnVersion="0")
    assert texts(read("versions")) == ["five", "other", "six"]


def test_a_version_without_rows_counts_as_written(
    cluster: InProcessCluster, values: Frames, read: Frames, append: Append
) -> None:
    cluster.create_topic("empty")
    named = {"txnAppId": "empty", "txnVersion": "1"}
    append(values(), "empty", **named)
    append(values("late"), "empty", **named)
    assert texts(read("empty")) == []


@pytest.mark.proof
@pytest.mark.parametrize("is_stream", [False, True], ids=["batch", "stream"])
def test_tasks_that_fail_and_are_run_again_write_their_rows_once(
    is_stream: bool, cluster: InProcessCluster, read: Frames, tmp_path: Path
) -> None:
    topic = f"retried-{is_stream}"
    cluster.create_topic(topic, partitions=2)
    checkpoint = [str(tmp_path)] if is_stream else []
    command = [sys.executable, str(RETRIED_WRITE), cluster.bootstrap_servers, topic, *checkpoint]
    subprocess.run(command, check=True, timeout=WAIT_S, capture_output=True)
    assert texts(read(topic)) == sorted(str(number) for number in range(20_000))
    assert nothing_is_open(cluster, topic, 2)


def streamed(frame: Any, cluster: InProcessCluster, topic: str, checkpoint: Path) -> None:
    """Run a query that copies to ``topic`` to its end."""
    writer = (
        frame.selectExpr("value")
        .writeStream.format("sparklog")
        .options(**{"kafka.bootstrap.servers": cluster.bootstrap_servers, "topic": topic})
    )
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(WAIT_S)
    finally:
        query.stop()


@pytest.mark.every_spark
def test_a_micro_batch_that_is_run_again_changes_nothing(
    cluster: InProcessCluster,
    values: Frames,
    read: Frames,
    read_stream: Frames,
    append: Append,
    tmp_path: Path,
) -> None:
    cluster.create_topic("source")
    cluster.create_topic("replayed", partitions=2)
    append(values("a", "b"), "source")
    frame = read_stream("source", startingOffsets="earliest")
    checkpoint = tmp_path / "checkpoint"
    streamed(frame, cluster, "replayed", checkpoint)
    # As if the driver had died after its commit, before Spark noted it.
    shutil.rmtree(checkpoint / "commits")
    append(values("c"), "source")
    streamed(frame, cluster, "replayed", checkpoint)
    assert texts(read("replayed")) == ["a", "b", "c"]


def test_a_batch_write_in_foreachbatch_has_the_batch_s_number_as_its_version(
    cluster: InProcessCluster,
    values: Frames,
    read: Frames,
    read_stream: Frames,
    append: Append,
    tmp_path: Path,
) -> None:
    cluster.create_topic("each")
    cluster.create_topic("each-source")
    append(values("a"), "each-source")

    def write_twice(frame: Any, batch_id: int) -> None:
        for _ in range(2):
            named = {"txnAppId": "each", "txnVersion": str(batch_id)}
            append(frame.select("value"), "each", **named)

    frame = read_stream("each-source", startingOffsets="earliest")
    writer = frame.writeStream.foreachBatch(write_twice).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_S)
    assert texts(read("each")) == ["a"]


@pytest.mark.proof
def test_two_writers_to_one_topic_do_not_wait_for_each_other(
    cluster: InProcessCluster, spark: Any, read: Frames, append: Append
) -> None:
    cluster.create_topic("shared")
    failures: list[Exception] = []

    def write(start: int) -> None:
        try:
            pyspark_sparklog.register(spark)
            rows = spark.range(start, start + 1_000, 1, 1).selectExpr("string(id) value")
            append(rows, "shared")
        except Exception as error:  # noqa: BLE001 (the test raises it)
            failures.append(error)

    threads = [threading.Thread(target=write, args=(start,)) for start in (0, 1_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert failures == []
    assert texts(read("shared")) == sorted(str(number) for number in range(2_000))
