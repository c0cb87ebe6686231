"""What brokers take while they have nothing to do, and for batches of next to no bytes: the part of a write
that depends on the number of batches alone, which is requests, answers, and the fetches of followers.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.clusters import Sparklog
from bench.kafka_clients import create_topic, wait_in_sync
from bench.machine import cpu_of
from sparklog.client.cluster import ClusterClient
from sparklog.client.producer import BatchProducer
from sparklog.model.ids import TopicPartition
from sparklog.records.kafka.encode import Record, build_records_batch

IDLE_S: Final = 5.0
TOPIC: Final = "layers-tiny"


@dataclass(frozen=True, slots=True)
class Brokers:
    """``idle``: CPU seconds of all brokers a second. ``tiny_s``: of so many tiny batches, one by one."""

    idle: float
    tiny_s: float


def brokers_alone(cluster: Sparklog, partitions: int, batches: int) -> Brokers:
    create_topic(cluster.bootstrap, TOPIC, partitions)
    wait_in_sync(cluster.bootstrap, TOPIC)
    idle = _cpu_s(cluster, lambda: time.sleep(IDLE_S)) / IDLE_S
    with (
        ClusterClient(cluster.bootstrap, client_id="bench-layers") as client,
        BatchProducer(client) as producer,
    ):
        _send(producer, partitions, partitions)
        began = time.monotonic()
        tiny_s = _cpu_s(cluster, lambda: _send(producer, partitions, batches))
        took_s = time.monotonic() - began
    return Brokers(idle, tiny_s - idle * took_s)


def _send(producer: BatchProducer, partitions: int, batches: int) -> None:
    """Each is acknowledged by all replicas before the next one is sent."""
    for number in range(batches):
        batch = build_records_batch([Record(value=b"x")], now_ms=time.time_ns() // 1_000_000)
        producer.send(TopicPartition(TOPIC, number % partitions), batch)
        producer.flush()


def _cpu_s(cluster: Sparklog, work: Callable[[], object]) -> float:
    pids = list(cluster.broker_pids().values())
    before = cpu_of(pids)
    work()
    return cpu_of(pids) - before
