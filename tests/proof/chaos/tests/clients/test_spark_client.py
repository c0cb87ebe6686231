"""Spark's readers and writers under the judge: what a stream writes down, and brokers that are killed."""

import itertools
import json
import threading
from random import Random
from types import SimpleNamespace

import pytest

from chaos.access import Access
from chaos.clients.client_parts import Positions, Settings
from chaos.clients.finale import dump_replicas, read_everything
from chaos.clients.spark_client import Stream
from chaos.clients.workload import SPARK_CLIENTS, Workload
from histories import Limits, Writer, check, read_history
from sparklog.records.envelope import split
from sparklog.testing import InProcessCluster

TOPICS = {"plain": 2, "keyed": 1}
KEYED = {"cleanup.policy": "compact", "segment.bytes": "65536", "min.cleanable.dirty.ratio": "0.2"}
PATIENCE_S = 120


def row(offset, partition=0, value=None):
    named = f"t/{partition}/p/{offset}".encode() if value is None else value
    return SimpleNamespace(
        topic="t", partition=partition, offset=offset, value=bytearray(named), headers=None
    )


@pytest.fixture
def life(tmp_path):
    """Begins a life of a stream that stands at 0 in both partitions; it tells what it wrote down."""
    path = tmp_path / "history.jsonl"
    with Writer(path) as writer:

        def begin():
            settings = Settings("tail", "spark", "s/0", Access(""), {"t": 2}, "", 1)
            positions = Positions(settings, writer)
            for place in settings.partitions():
                positions.seek(*place, where(path).get(place, 0))
            return Stream(positions, tmp_path / "last.json")

        yield begin


def where(path):
    """Where each partition's last line in the history stops."""
    found = {}
    for line in map(json.loads, path.read_text().splitlines()):
        if line["type"] == "ok":
            at = line["offset"] if line["f"] == "seek" else line["records"][-1][0] + 1
            found[line["topic"], line["partition"]] = at
    return found


def told(tmp_path):
    """The lines of partition 0: a seek's offset, or a poll's first position and offsets."""
    lines = map(json.loads, (tmp_path / "history.jsonl").read_text().splitlines())
    return [
        line["offset"] if line["f"] == "seek" else (line["from"], [offset for offset, _ in line["records"]])
        for line in lines
        if line["type"] == "ok" and line["partition"] == 0
    ]


def test_a_micro_batch_is_a_poll_of_each_partition_as_its_rows_came(life, tmp_path):
    life().take(0, [row(1), row(0, 1), row(0)])
    assert told(tmp_path) == [0, (0, [1, 0])]


def test_who_begins_behind_the_beginning_is_left_for_the_judge(life, tmp_path):
    life().take(0, [row(12)])
    assert told(tmp_path) == [0, (0, [12])]


@pytest.mark.parametrize("is_another_life", [False, True])
def test_the_last_micro_batch_may_be_given_again_when_the_stream_begins_anew(life, tmp_path, is_another_life):
    stream = life()
    stream.take(0, [row(0), row(1)])
    stream.take(1, [row(2), row(3)])
    if is_another_life:
        stream = life()
    else:
        stream.begin_anew()
    stream.take(1, [row(2), row(3)])
    stream.take(2, [row(4)])
    asked_anew = [4] if is_another_life else []
    assert told(tmp_path)[3:] == [*asked_anew, 2, (2, [2, 3]), (4, [4])]


@pytest.mark.parametrize(("batch", "offset"), [(0, 0), (2, 1), (2, 9)])
def test_another_batch_may_neither_go_back_nor_skip_and_is_left_for_the_judge(life, tmp_path, batch, offset):
    stream = life()
    stream.take(0, [row(0), row(1)])
    stream.take(1, [row(2), row(3)])
    stream.begin_anew()
    stream.take(batch, [row(offset)])
    assert told(tmp_path)[3:] == [(4, [offset])]


def test_only_the_first_micro_batch_may_be_given_again(life, tmp_path):
    stream = life()
    stream.take(0, [row(0)])
    stream.take(0, [row(0)])
    assert told(tmp_path)[1:] == [(0, [0]), (1, [0])]


@pytest.mark.parametrize("value", [b"\xff\xfe", b"", None])
def test_a_torn_record_is_told_to_the_judge_who_finds_that_nobody_sent_it(life, tmp_path, value):
    torn = SimpleNamespace(topic="t", partition=0, offset=0, value=value, headers=None)
    life().take(0, [torn])
    history = read_history(tmp_path / "history.jsonl")
    assert "NothingIsInvented" in {finding.rule for finding in check(history, Limits()).findings}


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


@pytest.mark.chaos
@pytest.mark.integration
@pytest.mark.timeout(600)
def test_what_spark_writes_and_reads_while_brokers_are_killed_is_neither_lost_nor_doubled(tmp_path):
    with InProcessCluster(tmp_path / "cluster", settings={"min.insync.replicas": "2"}) as cluster:
        cluster.create_topic("plain", partitions=2)
        cluster.create_topic("keyed", partitions=1, configs=KEYED)
        access = Access(cluster.bootstrap_servers)
        workload = Workload(lambda team: access, TOPICS, tmp_path, Random(1), 200.0, SPARK_CLIENTS, ["keyed"])
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
            assert workload.wait_for_all(PATIENCE_S) == []
            assert workload.stop(60.0, 5.0) == []
            assert read_everything(access, TOPICS, writer) > 0
            cluster.stop()
            log_dirs = {broker: cluster.root / f"broker-{broker}" / "0" for broker in (1, 2, 3)}
            replicas = {(topic, n): (1, 2, 3) for topic, count in TOPICS.items() for n in range(count)}
            assert dump_replicas(replicas, log_dirs, writer) == []
        segments = list((log_dirs[1] / "plain-0").glob("*.log"))
        headers = [header for path in segments for _, header in split(path.read_bytes())]
        assert any(header.is_arrow for header in headers)
    verdict = check(read_history(tmp_path / "harness.jsonl", *workload.histories.glob("*.jsonl")), Limits())
    assert verdict.is_clean, verdict
