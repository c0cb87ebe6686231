"""Two applications, as in production: one hosts brokers in its executors, another one has the data jobs."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.every_spark,
    pytest.mark.proof,
    pytest.mark.timeout(240),
]

WAIT_S = 120


def test_jobs_write_read_and_stream_while_the_broker_that_leads_is_killed(
    start: Callable[..., Any],
    kafka: Any,
    spark: Any,
    tmp_path: Path,
) -> None:
    brokers = start(tmp_path / "cluster", "--brokers", "2", "--port", "0")
    brokers.wait_ready()
    servers = {"bootstrap.servers": brokers.cluster()["bootstrap_servers"]}
    for topic in ("in", "out"):
        kafka.create_topic(servers["bootstrap.servers"], topic, replicas=2)

    def write(first: int, last: int) -> None:
        frame = spark.range(first, last).selectExpr("string(id) key", "string(id) value")
        frame.write.format("sparklog").options(**servers, topic="in").mode("append").save()

    def read(topic: str) -> list[int]:
        rows = spark.read.format("sparklog").options(**servers, subscribe=topic).load()
        return sorted(int(row.key) for row in rows.selectExpr("string(key) key").collect())

    write(0, 1_000)
    assert read("in") == list(range(1_000))
    stream = spark.readStream.format("sparklog").options(
        **servers, subscribe="in", startingOffsets="earliest", maxOffsetsPerTrigger="800"
    )
    sink = stream.load().writeStream.format("sparklog").options(**servers, topic="out")
    query = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        query.processAllAvailable()
        victim = brokers.broker_pid(1)
        os.kill(victim, signal.SIGKILL)
        write(1_000, 2_000)
        query.processAllAvailable()
        until(lambda: brokers.broker_pid(1) != victim, "broker 1 is launched anew", WAIT_S)
    finally:
        query.stop()
    assert read("in") == read("out") == list(range(2_000))
    status, _, err = brokers.stop()
    assert status == 0, err
    assert brokers.processes() == []
