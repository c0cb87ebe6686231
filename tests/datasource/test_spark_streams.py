"""Streaming reads and writes through a real Spark and a real cluster, by the Kafka connector's rules."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from sparklog.client.admin import Admin
from sparklog.testing import InProcessCluster
from tests.datasource.queries import WAIT_S, Batches, run

pytestmark = pytest.mark.integration

Frames = Callable[..., Any]
Append = Callable[..., None]

WITHOUT_MARKERS = {"delivery": "at-least-once"}
"""Of tests that count offsets."""


@pytest.mark.proof
@pytest.mark.every_spark
def test_limits_are_kept_by_available_now_and_ignored_by_once(
    spark: Any, read_stream: Frames, append: Append, tmp_path: Path
) -> None:
    append(spark.range(15).selectExpr("string(id) value").coalesce(1), "limits", **WITHOUT_MARKERS)
    frame = read_stream("limits", startingOffsets="earliest", maxOffsetsPerTrigger="5")
    by_limit, at_once = Batches(), Batches()
    progress = run(frame, by_limit, tmp_path / "a")
    assert [len(batch) for batch in by_limit.values] == [5, 5, 5]
    assert by_limit.all == [str(i) for i in range(15)]
    assert json.loads(progress[0]["sources"][0]["latestOffset"]) == {"limits": {"0": 15}}
    run(frame, at_once, tmp_path / "b", once=True)
    assert [len(batch) for batch in at_once.values] == [15]


def test_a_query_goes_on_where_it_stopped_and_takes_new_topics_from_their_start(
    values: Frames, read_stream: Frames, append: Append, tmp_path: Path
) -> None:
    append(values("before"), "go-on-1")
    frame = read_stream(subscribePattern="^go-on-", startingOffsets="latest")
    sink = Batches()
    run(frame, sink, tmp_path)
    assert sink.all == []
    append(values("a"), "go-on-1")
    append(values("b"), "go-on-2")
    run(frame, sink, tmp_path)
    assert sink.all == ["a", "b"]
    run(frame, sink, tmp_path)
    assert sink.all == ["a", "b"]


@pytest.mark.every_spark
def test_a_first_micro_batch_that_failed_is_read_again_exactly(
    values: Frames, read_stream: Frames, append: Append, tmp_path: Path
) -> None:
    """Under "latest", which is later at the restart than it was at the first run."""
    append(values("before"), "first-batch")
    frame = read_stream("first-batch")
    sink = Batches()
    sink.fails = True
    with pytest.raises(Exception, match="the sink was told to fail"):
        run(frame, sink, tmp_path)
    append(values("after"), "first-batch")
    sink.fails = False
    run(frame, sink, tmp_path)
    assert sink.all == ["after"]


def test_a_running_query_sees_everything_that_was_written_before_it_was_asked(
    values: Frames, spark: Any, read_stream: Frames, append: Append, tmp_path: Path
) -> None:
    """``processAllAvailable`` relies on "nothing new" being true, not remembered."""
    append(values("0"), "running")
    sink = Batches()
    frame = read_stream("running", startingOffsets="earliest")
    query = frame.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path)).start()
    try:
        for i in range(1, 4):
            query.processAllAvailable()
            assert sink.all == [str(number) for number in range(i)]
            append(values(str(i)), "running")
    finally:
        query.stop()


@pytest.mark.every_spark
def test_a_stream_is_written_and_complete_mode_appends(
    spark: Any, read: Frames, read_stream: Frames, append: Append, cluster: InProcessCluster, tmp_path: Path
) -> None:
    cluster.create_topic("complete-counts")
    rows = spark.range(100).selectExpr("string(id % 2) key", "string(id) value").coalesce(1)
    append(rows, "to-count", **WITHOUT_MARKERS)
    stream = read_stream("to-count", startingOffsets="earliest", maxOffsetsPerTrigger="50")
    counts = stream.groupBy("key").count().selectExpr("key", "string(count) value")
    query = (
        counts.writeStream.format("sparklog")
        .outputMode("complete")
        .option("kafka.bootstrap.servers", cluster.bootstrap_servers)
        .option("topic", "complete-counts")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(WAIT_S)
    rows = read("complete-counts").selectExpr("string(key) k", "string(value) v").collect()
    assert sorted(tuple(row) for row in rows) == [("0", "25"), ("0", "50"), ("1", "25"), ("1", "50")]


@pytest.mark.proof
@pytest.mark.every_spark
def test_a_deleted_topic_fails_the_query_or_is_passed_over(
    cluster: InProcessCluster, values: Frames, read_stream: Frames, append: Append, tmp_path: Path
) -> None:
    for topic in ("loss-1", "loss-2"):
        append(values(topic), topic)
    sink = Batches()
    options = {"subscribePattern": "^loss-", "startingOffsets": "earliest"}
    run(read_stream(**options), sink, tmp_path)
    assert sink.all == ["loss-1", "loss-2"]
    Admin(cluster.client).delete_topics(["loss-2"])
    append(values("more"), "loss-1")
    with pytest.raises(Exception, match=r"partitions loss-2-0 are gone.*failOnDataLoss"):
        run(read_stream(**options), sink, tmp_path)
    run(read_stream(**options, failOnDataLoss="false"), sink, tmp_path)
    assert sink.all[2:] == ["more"]


@pytest.mark.proof
@pytest.mark.every_spark
@pytest.mark.parametrize(
    "later",
    [pytest.param(("x",), marks=pytest.mark.proof), ("x", "y", "z", "zz")],
    ids=["shorter", "longer"],
)
def test_a_topic_that_was_created_again_while_the_query_was_down_is_a_loss(
    later: tuple[str, ...],
    cluster: InProcessCluster,
    read_stream: Frames,
    tmp_path: Path,
) -> None:
    topic = f"recreated-{len(later)}"
    cluster.create_topic(topic)
    cluster.produce(topic, ["a", "b", "c"])
    sink = Batches()
    run(read_stream(topic, startingOffsets="earliest"), sink, tmp_path)
    Admin(cluster.client).delete_topics([topic])
    cluster.create_topic(topic)
    cluster.produce(topic, later)
    message = f"{topic}-0: all offsets from 3 on are lost: the topic was deleted and created again"
    with pytest.raises(Exception, match=message):
        run(read_stream(topic), sink, tmp_path)
    run(read_stream(topic, failOnDataLoss="false"), sink, tmp_path)
    assert sink.all == ["a", "b", "c", *later]


@pytest.mark.every_spark
def test_deleted_records_are_told_with_their_range_and_the_reason(
    cluster: InProcessCluster, read_stream: Frames, tmp_path: Path
) -> None:
    for topic, configs in (("deleted", {}), ("deleted-for-sure", {"retention.ms": "-1"})):
        cluster.create_topic(topic, configs=configs)
        cluster.produce(topic, [str(i) for i in range(10)])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    cut = [TopicPartition("deleted", 0, 4), TopicPartition("deleted-for-sure", 0, 9)]
    for future in admin.delete_records(cut).values():
        future.result(30)
    start = {name: json.dumps({name: {"0": 1}}) for name in ("deleted", "deleted-for-sure")}
    told = {
        "deleted": r"3 offsets are lost \(from 1 up to, not including, 4\): retention or DeleteRecords",
        "deleted-for-sure": r"8 offsets are lost \(from 1 up to, not including, 9\): DeleteRecords deleted",
    }
    for name, message in told.items():
        with pytest.raises(Exception, match=f"{name}-0: {message}"):
            run(read_stream(name, startingOffsets=start[name]), Batches(), tmp_path / name)
    sink = Batches()
    frame = read_stream("deleted", startingOffsets=start["deleted"], failOnDataLoss="false")
    run(frame, sink, tmp_path / "deleted")
    assert sink.all == [str(i) for i in range(4, 10)]


@pytest.mark.proof
@pytest.mark.every_spark
def test_a_checkpoint_of_an_earlier_release_goes_on(
    cluster: InProcessCluster, read_stream: Frames, tmp_path: Path
) -> None:
    cluster.create_topic("earlier-release")
    cluster.produce("earlier-release", ["a", "b"])
    sink = Batches()
    frame = read_stream("earlier-release", startingOffsets="earliest")
    run(frame, sink, tmp_path)
    written = tmp_path / "offsets" / "0"
    lines = written.read_text().splitlines()
    offset = json.loads(lines[-1])
    assert offset["$sparklog"]["version"] == 2
    offset["$sparklog"] = {"version": 1, "initial": offset["$sparklog"]["initial"]}
    written.write_text("\n".join([*lines[:-1], json.dumps(offset)]))
    (written.parent / ".0.crc").unlink()
    cluster.produce("earlier-release", ["c"])
    run(frame, sink, tmp_path)
    assert sink.all == ["a", "b", "c"]


@pytest.mark.proof
@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"endingOffsets": "latest"}, "ending offset not valid in streaming queries"),
        ({"startingOffsets": '{"other":{"0":1}}'}, "startingOffsets must name all the partitions"),
    ],
)
def test_what_cannot_be_streamed_fails_with_the_reason(
    options: dict[str, str], message: str, values: Frames, read_stream: Frames, append: Append, tmp_path: Path
) -> None:
    append(values("a"), "streamed")
    with pytest.raises(Exception, match=message) as caught:
        run(read_stream("streamed", **options), Batches(), tmp_path)
    assert "UnboundLocalError" not in str(caught.value)


@pytest.mark.every_spark
def test_a_stream_survives_the_death_of_leaders(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """Source and sink over a cluster of their own, whose brokers die and come back one after the other."""
    with InProcessCluster(tmp_path_factory.mktemp("failover"), zookeeper="real") as own:
        own.create_topic("in", partitions=3)
        own.create_topic("out", partitions=3)
        servers = {"kafka.bootstrap.servers": own.bootstrap_servers}

        def feed(first: int, last: int) -> None:
            frame = spark.range(first, last).selectExpr("string(id) key", "string(id) value")
            frame.write.format("sparklog").options(**servers, topic="in").mode("append").save()

        feed(0, 1_000)
        source = spark.readStream.format("sparklog").options(
            **servers, subscribe="in", startingOffsets="earliest"
        )
        query = (
            source.load()
            .writeStream.format("sparklog")
            .options(**servers, topic="out", checkpointLocation=str(tmp_path))
            .start()
        )
        try:
            for i, broker_id in enumerate((1, 2, 3), start=1):
                own.kill(broker_id)
                feed(1_000 * i, 1_000 * (i + 1))
                query.processAllAvailable()
                own.revive(broker_id)
                own.wait_for_isr("in", 3)
                own.wait_for_isr("out", 3)
        finally:
            query.stop()
        result = spark.read.format("sparklog").options(**servers, subscribe="out").load()
        keys = [int(row.k) for row in result.selectExpr("string(key) k").collect()]
        assert sorted(keys) == list(range(4_000))
