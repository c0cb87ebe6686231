"""Spark's readers and writers under the judge: what a stream writes down, and brokers that are killed."""

import itertools
import json
import threading
from random import Random
from types import SimpleNamespace

import pytest

from chaos.client_parts import Positions, Settings
from chaos.finale import dump_replicas, read_everything
from chaos.spark_client import Stream
from chaos.workload import SPARK_CLIENTS, Workload
from sparklog.records.envelope import split
from sparklog.testing import InProcessCluster
from sparklog.testing.histories import Limits, Writer, check, read_history

TOPICS = {"plain": 2, "keyed": 1}
PATIENCE_S = 120


def row(offset, partition=0, value=None):
    named = f"t/{partition}/p/{offset}" if value is None else value
    return SimpleNamespace(
        topic="t", partition=partition, offset=offset, value=bytearray(named.encode()), headers=None
    )


@pytest.fixture
def stream(tmp_path):
    path = tmp_path / "history.jsonl"
    with Writer(path) as writer:
        stream = Stream(Positions(Settings("tail", "spark", "s/0", "", {"t": 1}, "", 1), writer))
        stream.lines = lambda: [
            (
                line["f"],
                line.get("offset", line.get("from")),
                [offset for offset, _ in line.get("records", ())],
            )
            for line in map(json.loads, path.read_text().splitlines())
            if line["type"] == "ok"
        ]
        yield stream


def test_a_micro_batch_is_a_poll_of_each_partition_in_the_order_of_offsets(stream):
    stream.take([row(1), row(0, 1), row(0)])
    assert stream.lines() == [("seek", 0, []), ("seek", 0, []), ("poll", 0, [0, 1]), ("poll", 0, [0])]


def test_the_first_micro_batch_of_a_stream_that_began_anew_may_be_one_that_was_given_already(stream):
    stream.take([row(0), row(1)])
    stream.begin_anew()
    stream.take([row(1), row(2)])
    assert stream.lines()[2:] == [("seek", 1, []), ("poll", 1, [1, 2])]


def test_a_later_one_that_goes_back_or_a_first_one_that_skips_is_left_for_the_judge(stream):
    stream.take([row(0), row(1)])
    stream.take([row(1)])
    stream.begin_anew()
    stream.take([row(9)])
    assert stream.lines()[2:] == [("poll", 2, [1]), ("poll", 2, [9])]


def answers(histories, kind, client):
    """How many lines of that kind the lives of a client have written."""
    return sum(
        f'"type":"ok","f":"{kind}"' in line
        for path in histories.glob(f"{client}-*.jsonl")
        for line in path.read_text().splitlines()
    )


def wait_for_more(histories, kind, client):
    before, pause = answers(histories, kind, client), threading.Event()
    for _ in range(PATIENCE_S * 10):
        if answers(histories, kind, client) > before:
            return
        pause.wait(0.1)
    pytest.fail(f"{client} had no {kind} in {PATIENCE_S} s")


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_what_spark_writes_and_reads_while_brokers_are_killed_is_neither_lost_nor_doubled(tmp_path):
    with InProcessCluster(tmp_path / "cluster", settings={"min.insync.replicas": "2"}) as cluster:
        cluster.create_topic("plain", partitions=2)
        cluster.create_topic("keyed", partitions=1, configs={"cleanup.policy": "compact"})
        workload = Workload(
            cluster.bootstrap_servers, TOPICS, tmp_path, Random(1), 200.0, SPARK_CLIENTS, ["keyed"]
        )
        writes, reads = (plan.name for plan in SPARK_CLIENTS)
        with Writer(tmp_path / "harness.jsonl") as writer:
            writer.event("harness", "topic", topic="keyed", what="created", cleanup="compact")
            workload.start()
            workload.crash_nobody_more()
            for broker_id, crashes in itertools.zip_longest((1, 2, 3), (None, reads)):
                wait_for_more(workload.histories, "send", writes)
                wait_for_more(workload.histories, "poll", reads)
                cluster.kill(broker_id)
                if crashes is not None:
                    workload.crash(crashes)
                wait_for_more(workload.histories, "send", writes)
                wait_for_more(workload.histories, "poll", reads)
                cluster.revive(broker_id)
                for topic in TOPICS:
                    cluster.wait_for_isr(topic, 3)
            writer.event("harness", "heal")
            wait_for_more(workload.histories, "send", writes)
            assert workload.stop(60.0, 5.0) == []
            assert read_everything(cluster.bootstrap_servers, TOPICS, writer) > 0
            cluster.stop()
            log_dirs = {broker: cluster.root / f"broker-{broker}" / "0" for broker in (1, 2, 3)}
            replicas = {(topic, n): (1, 2, 3) for topic, count in TOPICS.items() for n in range(count)}
            assert dump_replicas(replicas, log_dirs, writer) == []
        segments = list((log_dirs[1] / "plain-0").glob("*.log"))
        headers = [header for path in segments for _, header in split(path.read_bytes())]
        assert any(header.is_arrow for header in headers)
    verdict = check(read_history(tmp_path / "harness.jsonl", *workload.histories.glob("*.jsonl")), Limits())
    assert verdict.findings == ()
