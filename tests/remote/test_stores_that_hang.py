"""Brokers upon a store that takes connections and never answers: they serve, and stop in seconds."""

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from sparklog.model import ids
from sparklog.testing import InProcessCluster
from tests.remote.conftest import s3_in_memory
from tests.tiers import copying_at_once, in_the_store_only
from tests.waiting import until

pytestmark = pytest.mark.integration

STOP_S = 10.0
"""Far below the 30 s that a step of a store may take, and its 60 s on S3."""

TIERED = in_the_store_only(1_000)


def cluster_on(url: str, folder: Path) -> InProcessCluster:
    settings = copying_at_once(url)
    return InProcessCluster(folder / "cluster", brokers=1, settings=settings)


def calls_under_way() -> int:
    return sum(thread.name == "remote-store-call" for thread in threading.enumerate())


def stop_within(cluster: InProcessCluster, seconds: float) -> None:
    began = time.monotonic()
    cluster.shut_down(1)
    assert time.monotonic() - began < seconds


@pytest.mark.parametrize("scheme", ["s3", "hdfs", "webhdfs"])
def test_a_broker_starts_serves_and_stops_while_its_store_hangs(
    scheme: str, hanging: int, s3_keys: Callable[[str], None], tmp_path: Path
) -> None:
    s3_keys(f"http://127.0.0.1:{hanging}")
    url = "s3://history/x" if scheme == "s3" else f"{scheme}://127.0.0.1:{hanging}/x"
    with cluster_on(url, tmp_path) as cluster:
        until(lambda: calls_under_way() > 0, "the copier, which tries the store")
        cluster.create_topic("t", configs=TIERED)
        cluster.produce("t", ["x" * 900] * 3)
        assert len(cluster.consume("t", at_least=3)) == 3
        stop_within(cluster, STOP_S)


def test_copies_and_reads_under_way_do_not_hold_up_a_stop_and_nothing_is_lost(
    s3_keys: Callable[[str], None], tmp_path: Path
) -> None:
    values = [f"{number} {'x' * 300}" for number in range(20)]
    with s3_in_memory(tmp_path) as (address, server):
        s3_keys(address)
        with cluster_on("s3://history/x", tmp_path) as cluster:
            cluster.create_topic("t", configs=TIERED)
            for value in values:
                cluster.produce("t", [value])
            partition = cluster.brokers[1].body.replicas.get(ids.TopicPartition("t", 0))
            assert partition is not None
            until(lambda: partition.log.local_start_offset >= 15, "records that only the store has")
            server.send_signal(signal.SIGSTOP)
            consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "readers"})
            consumer.assign([TopicPartition("t", 0, 0)])
            assert consumer.poll(1) is None
            for _ in range(5):
                cluster.produce("t", ["y" * 300])
            until(lambda: calls_under_way() >= 2, "a copy and a read")
            consumer.close()
            stop_within(cluster, STOP_S)
            server.send_signal(signal.SIGCONT)
            cluster.revive(1)
            read = [record.value.decode() for record in cluster.consume("t", at_least=25)]
            assert read == [*values, *["y" * 300] * 5]
