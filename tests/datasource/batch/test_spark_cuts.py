"""Batch reads during atomic writes: all of a write or nothing, and the same rows for all tasks."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from sparklog.testing import InProcessCluster
from sparklog_datasource.batch import cuts
from sparklog_datasource.batch.batch_reader import BatchReader
from sparklog_datasource.batch.cuts import APP_ID, DRIVER_HOST, DRIVER_PORT, EXECUTION_ID
from sparklog_datasource.reads.read_options import ReadOptions

pytestmark = pytest.mark.integration

Frames = Callable[..., Any]
Append = Callable[..., None]
Write = Callable[[str, str], None]

PROPERTIES = (APP_ID, DRIVER_HOST, DRIVER_PORT, EXECUTION_ID)
ROWS = 60
WRITES = 6


@pytest.fixture
def write(spark: Any, append: Append) -> Callable[[str, str], None]:
    """An atomic write of a value into all four partitions of a topic."""

    def save(topic: str, value: str) -> None:
        rows = [(number % 4, value) for number in range(ROWS)]
        append(spark.createDataFrame(rows, "partition int, value string"), topic)

    return save


@pytest.fixture
def topic(cluster: InProcessCluster, write: Write, request: Any) -> str:
    """A topic of four partitions with one atomic write in it."""
    name = request.node.name.replace("[", "-").replace("]", "")[:100]
    cluster.create_topic(name, partitions=4)
    write(name, "first")
    return name


def counted(frame: Any) -> Counter[str]:
    return Counter(bytes(row.value).decode() for row in frame.select("value").collect())


@pytest.mark.proof
def test_reads_during_writes_have_all_rows_of_each_or_none(topic: str, write: Write, read: Frames) -> None:
    done = threading.Event()

    def writes() -> None:
        try:
            for number in range(WRITES):
                write(topic, str(number))
        finally:
            done.set()

    thread = threading.Thread(target=writes)
    thread.start()
    frame = read(topic)
    while not done.is_set():
        assert set(counted(frame).values()) == {ROWS}
    thread.join()
    assert len(counted(frame)) == WRITES + 1


def test_two_scans_of_one_query_read_the_same_rows_although_one_is_written_in_between(
    topic: str, cluster: InProcessCluster, read: Frames
) -> None:
    servers = cluster.bootstrap_servers

    def writes_at_its_end(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        # In Spark's worker.
        from sparklog.client.cluster import ClusterClient
        from sparklog.client.producer import BatchProducer
        from sparklog.model.ids import TopicPartition
        from sparklog.records.kafka.encode import Record, build_records_batch

        with ClusterClient(servers) as client, BatchProducer(client) as producer:
            batch = build_records_batch([Record(value=b"between")], now_ms=1)
            producer.send(TopicPartition(topic, 3), batch)

    frame = read(topic).select("value")
    first = frame.mapInArrow(writes_at_its_end, "value binary")
    assert counted(first.union(frame).coalesce(1)) == {"first": 2 * ROWS}
    assert counted(frame)["between"] == 4


@pytest.mark.every_spark
def test_tasks_know_their_application_its_driver_s_address_and_their_execution(
    topic: str, spark: Any, read: Frames
) -> None:
    def known(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            context = TaskContext.get()
            assert context is not None
            told = [context.getLocalProperty(name) for name in PROPERTIES]
            yield pa.RecordBatch.from_pylist([{"told": json.dumps(told)}])

    def told() -> list[str | None]:
        (one,) = {row.told for row in read(topic).mapInArrow(known, "told string").collect()}
        found: list[str | None] = json.loads(one)
        return found

    *first, execution = told()
    *second, later_execution = told()
    conf = spark.sparkContext.getConf()
    assert first == second == [conf.get(name) for name in PROPERTIES[:-1]]
    assert None not in first
    assert int(execution or "") < int(later_execution or "")


def rows_of(reader: BatchReader, partitions: list[Any]) -> list[tuple[int, int]]:
    """Partition and offset of each row, as tasks of other processes read them."""
    found = []
    for partition in partitions:
        cuts._remembered.clear()
        for batch in reader.read(partition):
            columns = (batch.column(name).to_pylist() for name in ("partition", "offset"))
            found += zip(*columns, strict=True)
    return sorted(found)


@pytest.mark.parametrize(
    "bounds", [{}, {"maxRecordsPerPartition": "7"}, {"endingTimestamp": "9999999999999"}]
)
def test_a_task_that_is_run_again_reads_the_same_rows(
    bounds: dict[str, str], topic: str, cluster: InProcessCluster, write: Write
) -> None:
    options = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, **bounds}
    reader = BatchReader(ReadOptions.of_batch(options))
    planned = reader.partitions()
    before = rows_of(reader, planned)
    write(topic, "later")
    assert rows_of(reader, planned) == before
    assert len(before) == ROWS
    assert len(rows_of(reader, reader.partitions())) == 2 * ROWS
    assert {partition for partition, _ in before} == {0, 1, 2, 3}
