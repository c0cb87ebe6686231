"""Markers, aborted and compacted records leave gaps, and no data is lost: on a real Spark."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from sparklog.client.admin import Admin
from sparklog.testing import InProcessCluster
from tests.appended_transactions import AppendedTransactions
from tests.datasource.queries import Batches, run
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.proof]

Frames = Callable[..., Any]

STRETCH = 300


def texts(frame: Any) -> list[str]:
    rows = frame.orderBy("offset").select("value").collect()
    return [bytes(row.value).decode() for row in rows]


@pytest.fixture(scope="module")
def stretch(cluster: InProcessCluster) -> str:
    """Committed records before, within and behind a long aborted stretch, which a marker ends; its topic."""
    log = AppendedTransactions(cluster, "stretch")
    log.write(1, b"a", b"b")
    log.end(1, commits=True)
    for _ in range(3):
        log.write(2, *[b"aborted"] * (STRETCH // 3))
        log.write(1, b"within")
        log.end(1, commits=True)
    log.end(2, commits=False)
    log.write(1, b"c")
    log.end(1, commits=True)
    for producer_id in (3, 4, 5):
        log.write(producer_id, b"aborted at the end")
        log.end(producer_id, commits=False)
    return "stretch"


COMMITTED = ["a", "b", "within", "within", "within", "c"]
END = 3 + STRETCH + 3 * 2 + 1 + 2 + 3 * 2


@pytest.mark.every_spark
@pytest.mark.parametrize(
    "cuts",
    [
        pytest.param({}, marks=pytest.mark.proof),
        {"maxRecordsPerPartition": "7"},
        pytest.param({"minPartitions": "20"}, marks=pytest.mark.proof),
    ],
)
def test_pieces_that_hold_only_markers_or_aborted_records_have_no_rows(
    cuts: dict[str, str], stretch: str, read: Frames
) -> None:
    assert texts(read(stretch, **cuts)) == COMMITTED


def test_bounds_may_be_markers_and_aborted_records(stretch: str, read: Frames) -> None:
    def between(start: int, end: int) -> list[str]:
        return texts(read(stretch, startingOffsets=f'{{"stretch":{{"0":{start}}}}}',
                          endingOffsets=f'{{"stretch":{{"0":{end}}}}}'))  # fmt: skip

    assert between(2, 3) == []
    assert between(1, 4) == ["b"]
    assert between(END - 1, END) == []
    assert between(10, 50) == []


@pytest.mark.every_spark
def test_limits_lead_across_an_aborted_stretch_and_available_now_ends_beyond_it(
    stretch: str, read_stream: Frames, tmp_path: Path
) -> None:
    sink = Batches()
    frame = read_stream(stretch, startingOffsets="earliest", maxOffsetsPerTrigger="60")
    progress = run(frame, sink, tmp_path)
    assert sink.all == COMMITTED
    assert len(sink.values) == -(-END // 60)
    assert json.loads(progress[-1]["sources"][0]["endOffset"])[stretch] == {"0": END}


@pytest.mark.every_spark
def test_a_query_stops_before_an_open_transaction_and_goes_on_when_it_ends(
    cluster: InProcessCluster, read: Frames, read_stream: Frames, tmp_path: Path
) -> None:
    log = AppendedTransactions(cluster, "open")
    log.write(1, b"a")
    log.end(1, commits=True)
    log.write(2, b"open")
    log.write(3, b"behind it")
    log.end(3, commits=True)
    sink = Batches()
    frame = read_stream("open", startingOffsets="earliest")
    run(frame, sink, tmp_path)
    assert sink.all == texts(read("open")) == ["a"]
    uncommitted = read("open", **{"kafka.isolation.level": "read_uncommitted"})
    assert texts(uncommitted) == ["a", "open", "behind it"]
    log.end(2, commits=True)
    run(frame, sink, tmp_path)
    assert sink.all == ["a", "open", "behind it"]


@pytest.fixture
def compacting(tmp_path: Path) -> Iterator[InProcessCluster]:
    settings = {"log.cleaner.backoff.ms": "50"}
    with InProcessCluster(tmp_path, brokers=1, settings=settings) as cluster:
        yield cluster


def test_compacted_records_are_no_loss(spark: Any, compacting: InProcessCluster, tmp_path: Path) -> None:
    configs = {"cleanup.policy": "compact", "segment.bytes": "2000", "min.cleanable.dirty.ratio": "0.01"}
    compacting.create_topic("compacted", configs=configs)
    producer = Producer({"bootstrap.servers": compacting.bootstrap_servers})
    for i in range(200):
        producer.produce("compacted", key=b"k%d" % (i % 10), value=b"%d" % i)
        if i % 20 == 19:
            producer.flush(30)
    cleaner = compacting.brokers[min(compacting.brokers)].body.cleaner
    until(
        lambda: any(state.last is not None and not state.is_due for state in cleaner.states()), "compaction"
    )
    options = {"kafka.bootstrap.servers": compacting.bootstrap_servers, "subscribe": "compacted"}
    by_batch = texts(spark.read.format("sparklog").options(**options, maxRecordsPerPartition="15").load())
    assert len(by_batch) < 200
    assert by_batch[-10:] == [str(i) for i in range(190, 200)]
    sink = Batches()
    stream = spark.readStream.format("sparklog").options(
        **options, startingOffsets="earliest", maxOffsetsPerTrigger="40"
    )
    run(stream.load(), sink, tmp_path / "checkpoint")
    assert sink.all == by_batch


@pytest.mark.every_spark
def test_a_pattern_never_finds_internal_topics(cluster: InProcessCluster, read: Frames) -> None:
    cluster.create_topic("not-internal")
    cluster.produce("not-internal", ["x"])
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "fills", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["not-internal"])
    until(lambda: consumer.poll(0.2) is not None, "a record for the group")
    consumer.commit(asynchronous=False)
    consumer.close()
    assert sum(p.high_watermark for p in cluster.partitions("__consumer_offsets")) > 0
    assert "__consumer_offsets" in Admin(cluster.client).list_topics(include_internal=True)
    for pattern in ("__consumer_offsets|^not-internal$", "^not-internal$|^__.*offsets$"):
        assert {row.topic for row in read(subscribePattern=pattern).collect()} == {"not-internal"}
