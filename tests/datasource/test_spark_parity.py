"""Rows of the table in connector-parity.md that no other test has: Kafka's clients write, and Spark reads."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewPartitions

from sparklog.testing import InProcessCluster
from tests.datasource.queries import WAIT_S, Batches, run

pytestmark = [pytest.mark.integration, pytest.mark.every_spark, pytest.mark.proof]

Frames = Callable[..., Any]
Write = Callable[..., None]


@pytest.fixture
def write(cluster: InProcessCluster) -> Write:
    """Create a topic if it is new, and write values with a client of Kafka's."""

    def produce(topic: str, *texts: str, partition: int = 0, timestamp: int = 0, partitions: int = 1) -> None:
        if topic not in cluster.admin.list_topics():
            # The times of these tests are of 1970: retention would delete records while a test reads them.
            cluster.create_topic(topic, partitions=partitions, configs={"retention.ms": "-1"})
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0})
        for text in texts:
            producer.produce(topic, text.encode(), partition=partition, timestamp=timestamp)
        assert producer.flush(30) == 0

    return produce


def texts(frame: Any) -> list[str]:
    rows = frame.orderBy("topic", "partition", "offset").select("value").collect()
    return [bytes(row.value).decode() for row in rows]


@pytest.mark.proof
def test_progress_counts_input_rows_and_watermarks_follow_the_timestamp(
    write: Write, read_stream: Frames, tmp_path: Path
) -> None:
    for hour in (1, 2, 5):
        write("watermark", f"at {hour}", timestamp=hour * 3_600_000)
    frame = read_stream("watermark", startingOffsets="earliest", maxOffsetsPerTrigger="2")
    counts = frame.withWatermark("timestamp", "1 hour").groupBy("timestamp").count()
    found: list[str] = []

    def keep(rows: Any, batch_id: int) -> None:
        found.extend(str(row.timestamp) for row in rows.collect())

    writer = counts.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path))
    query = writer.outputMode("update").trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_S)
    reports = query.recentProgress
    assert [report["numInputRows"] for report in reports[:2]] == [2, 1]
    assert reports[1]["eventTime"]["watermark"] == "1970-01-01T01:00:00.000Z"
    assert sorted(found) == [f"1970-01-01 0{hour}:00:00" for hour in (1, 2, 5)]


@pytest.mark.proof
def test_an_idle_source_in_a_union_is_read_once(write: Write, read_stream: Frames, tmp_path: Path) -> None:
    write("union-idle", "a")
    write("union-busy", "b")
    sink = Batches()
    idle, busy = (read_stream(f"union-{name}", startingOffsets="earliest") for name in ("idle", "busy"))
    frame = idle.union(busy)
    run(frame, sink, tmp_path)
    write("union-busy", "c")
    run(frame, sink, tmp_path)
    assert sorted(sink.all) == ["a", "b", "c"]


@pytest.mark.proof
def test_a_stream_joined_with_itself_reads_every_row_on_both_sides(
    write: Write, read_stream: Frames, tmp_path: Path
) -> None:
    write("self-join", "1", "2", "3")
    frame = read_stream("self-join", startingOffsets="earliest").selectExpr("string(value) v", "offset")
    joined = frame.alias("l").join(frame.alias("r"), "v").select("v")
    found: list[str] = []
    writer = joined.writeStream.foreachBatch(lambda rows, _: found.extend(row.v for row in rows.collect()))
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_S)
    assert sorted(found) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("strategy", "start"),
    [
        pytest.param({"subscribe": "{}"}, {"startingOffsets": "earliest"}, marks=pytest.mark.proof),
        ({"subscribePattern": "^{}$"}, {"startingOffsets": "latest"}),
        pytest.param(
            {"assign": '{{"{}":[0,1]}}'}, {"startingOffsets": '{{"{}":{{"0":1}}}}'}, marks=pytest.mark.proof
        ),
        pytest.param({"subscribe": "{}"}, {"startingTimestamp": "2000"}, marks=pytest.mark.proof),
        pytest.param(
            {"subscribePattern": "^{}$"},
            {"startingOffsetsByTimestamp": '{{"{}":{{"0":2000}}}}'},
            marks=pytest.mark.proof,
        ),
    ],
    ids=["earliest", "latest", "offsets", "timestamp", "timestamps"],
)
def test_a_query_recovers_and_takes_added_partitions_from_their_beginning(
    strategy: dict[str, str],
    start: dict[str, str],
    write: Write,
    cluster: InProcessCluster,
    read_stream: Frames,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    word = request.node.callspec.id
    topic = f"recovers-{word}"
    write(topic, "first", timestamp=1_000)
    write(topic, "second", timestamp=2_000)
    options = {name: text.format(topic) for name, text in {**strategy, **start}.items()}
    sink = Batches()
    run(read_stream(**options), sink, tmp_path)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    cluster.wait_for_leader(topic, 1)
    write(topic, "third")
    write(topic, "added", partition=1)
    run(read_stream(**options), sink, tmp_path)
    begun = {"earliest": ["first", "second"], "latest": []}.get(word, ["second"])
    assert sink.all == [*begun, "third", "added"]


def test_a_frame_twice_in_a_union_is_read_twice_and_late_bound(write: Write, read: Frames) -> None:
    write("twice", "a")
    frame = read("twice")
    both = frame.union(frame)
    assert both.count() == 2
    write("twice", "b")
    assert both.count() == 4


def test_an_earliest_start_is_late_bound_after_records_were_deleted(
    write: Write, cluster: InProcessCluster, read: Frames
) -> None:
    write("start-is-late", "a", "b", "c")
    frame = read("start-is-late", startingOffsets="earliest")
    assert texts(frame) == ["a", "b", "c"]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.delete_records([Place("start-is-late", 0, 2)]).values():
        future.result(30)
    assert texts(frame) == ["c"]


def test_bounds_of_several_kinds_are_combined(write: Write, read: Frames) -> None:
    for number in range(4):
        write("combined", str(number), timestamp=1_000 * (number + 1))
    second, fourth = (json.dumps({"combined": {"0": number}}) for number in (1, 3))
    at_second, at_fourth = (json.dumps({"combined": {"0": ms}}) for ms in (2_000, 4_000))

    def between(**options: str) -> list[str]:
        return texts(read("combined", **options))

    assert between(startingOffsetsByTimestamp=at_second, endingOffsets=fourth) == ["1", "2"]
    assert between(startingOffsets=second, endingOffsetsByTimestamp=at_fourth) == ["1", "2"]
    assert between(startingTimestamp="2000", endingTimestamp="3000") == ["1"]
    several = {"startingTimestamp": "4000", "startingOffsetsByTimestamp": at_second}
    assert between(startingOffsets=second, **several) == ["3"]


def test_a_timestamp_that_spark_cannot_hold_does_not_end_the_read(
    write: Write, cluster: InProcessCluster, read: Frames
) -> None:
    write("odd-times", "ordinary", timestamp=1_000)
    write("odd-times", "far", timestamp=2**62)
    rows = read("odd-times").selectExpr("string(value) v", "unix_micros(timestamp) us").collect()
    nearest = (2**63 - 1) // 1_000 * 1_000
    assert sorted((row.v, row.us) for row in rows) == [("far", nearest), ("ordinary", 1_000_000)]


@pytest.mark.proof
def test_a_streaming_write_reports_its_rows(
    write: Write, cluster: InProcessCluster, read_stream: Frames, tmp_path: Path
) -> None:
    write("reported", "a", "b")
    cluster.create_topic("reported-out")
    frame = read_stream("reported", startingOffsets="earliest")
    writer = frame.writeStream.format("sparklog").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    options = {"topic": "reported-out", "checkpointLocation": str(tmp_path)}
    query = writer.options(**options).trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_S)
    assert query.recentProgress[0]["sink"]["numOutputRows"] == 2
    assert [record.value for record in cluster.consume("reported-out", at_least=2)] == [b"a", b"b"]


@pytest.mark.proof
def test_a_stopped_stream_ends_at_once(write: Write, read_stream: Frames, tmp_path: Path) -> None:
    write("stopped", "a")
    writer = read_stream("stopped").writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.start()
    query.processAllAvailable()
    began = time.monotonic()
    query.stop()
    assert not query.isActive
    assert query.exception() is None
    assert time.monotonic() - began < WAIT_S


def test_tasks_read_about_as_many_bytes_as_asked_for(write: Write, read: Frames) -> None:
    write("by-bytes", *[str(i) + "x" * 2_000 for i in range(200)], partitions=6)
    for partition in range(1, 5):
        write("by-bytes", f"small-{partition}", partition=partition)
    assert read("by-bytes").rdd.getNumPartitions() == 6
    frame = read("by-bytes", bytesPerTask="128k")
    assert frame.rdd.getNumPartitions() in (4, 5)  # 400 kB in four, and small ones with the last or apart
    assert frame.count() == 204
    write("by-bytes", "late", partition=5)
    assert frame.count() == 205
    assert read("by-bytes", bytesPerTask="1g").rdd.getNumPartitions() == 1
