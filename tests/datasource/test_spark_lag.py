"""The lag of queries on a real Spark, as Spark's Kafka connector reports it among a source's metrics."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyspark_sparklog
from sparklog.testing import InProcessCluster
from tests.datasource.queries import WAIT_S, Batches
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.every_spark, pytest.mark.proof]

Frames = Callable[..., Any]


def test_the_lag_of_a_query_falls_with_each_micro_batch_and_a_listener_sees_it(
    cluster: InProcessCluster, spark: Any, read_stream: Frames, tmp_path: Path
) -> None:
    cluster.create_topic("lag", partitions=2)
    cluster.produce("lag", ["x"] * 10, partition=0)
    cluster.produce("lag", ["x"] * 2, partition=1)
    told: list[tuple[str, dict[str, str]]] = []
    is_over = threading.Event()

    def report(query_id: str, lag: dict[str, str]) -> None:
        told.append((query_id, lag))
        if lag["maxOffsetsBehindLatest"] == "0":
            is_over.set()

    listener = pyspark_sparklog.lag_listener(report)
    spark.streams.addListener(listener)
    frame = read_stream("lag", startingOffsets="earliest", maxOffsetsPerTrigger="6")
    writer = frame.writeStream.foreachBatch(Batches()).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(WAIT_S)
        assert is_over.wait(WAIT_S)
    finally:
        query.stop()
        spark.streams.removeListener(listener)
    expected = [("0", "0", "0.0"), ("1", "5", "3.0")]
    names = ("minOffsetsBehindLatest", "maxOffsetsBehindLatest", "avgOffsetsBehindLatest")
    found = [tuple(lag[name] for name in names) for _, lag in told]
    assert [found[-1], found[0]] == expected
    assert {query_id for query_id, _ in told} == {query.id}
    until(lambda: pyspark_sparklog.lag(query) == told[-1][1], "the last progress report")
