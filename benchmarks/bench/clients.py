"""What Kafka's own clients get: mass in both directions, delays under a light load, requests one by one."""

import time
from statistics import median
from typing import Final

from confluent_kafka import Producer

from bench.clusters import Cluster, Kafka, Pair, Sparklog
from bench.kafka_clients import (
    consumer_performance,
    create_topic,
    producer_performance,
    quiet,
    wait_in_sync,
)
from bench.report import PartResult, Row
from bench.scale import Scale, say

PARTITIONS: Final = 4
RECORD_BYTES: Final = 1_000
LIGHT_PER_S: Final = 1_000
ALONE_BYTES: Final = 100
FLUSH_S: Final = 10.0

READ: Final = "ConsumerPerformance, 1,000 B records"
P50, P99 = (f"acks=all at {LIGHT_PER_S:,} records/s of 1,000 B, {name}" for name in ("p50", "p99"))
ALONE: Final = "small requests one after another, one partition"
TITLES: Final = {
    READ: ("MB/s", True, "Java; best; without the time of joining"),
    P50: ("ms", False, "Java's ProducerPerformance; median of rounds"),
    P99: ("ms", False, "the same"),
    ALONE: ("1/s", True, "librdkafka, acks=all, one record each; best"),
}


def clients(pair: Pair, scale: Scale) -> PartResult:
    """Each round asks both clusters, the order flipped."""
    found: dict[tuple[str, str], list[float]] = {}
    for cluster in pair.all():
        create_topic(cluster.bootstrap, "mass", PARTITIONS)
        create_topic(cluster.bootstrap, "alone", 1)
        for topic in ("mass", "alone"):
            wait_in_sync(cluster.bootstrap, topic)
        if pair.with_kafka:
            producer_performance(cluster.bootstrap, "mass", scale.produced_records * 4, RECORD_BYTES)
        _one_by_one(cluster, 1.0)
    for number in range(scale.rounds):
        for cluster in pair.all()[:: -1 if number % 2 else 1]:
            measured = _java(cluster, scale, number) if pair.with_kafka else {}
            measured[ALONE] = _one_by_one(cluster, scale.commit_s / 3)
            for title, figure in measured.items():
                found.setdefault((title, cluster.name), []).append(figure)
            say(f"clients {cluster.name}: {measured}")
    return PartResult([_row(title, found) for title in TITLES if (title, Sparklog.name) in found], [])


def _java(cluster: Cluster, scale: Scale, number: int) -> dict[str, float]:
    """Of the topic that was written before. The light load is of some seconds."""
    records = int(LIGHT_PER_S * scale.latency_s)
    light = producer_performance(
        cluster.bootstrap, "alone", records, RECORD_BYTES, {"acks": "all"}, per_second=LIGHT_PER_S
    )
    read = consumer_performance(cluster.bootstrap, "mass", scale.produced_records * 4, f"mass-{number}")
    return {READ: read, P50: light.p50_ms, P99: light.p99_ms}


def _one_by_one(cluster: Cluster, seconds: float) -> float:
    """Requests a second of a producer that waits for each answer."""
    producer = Producer(quiet(cluster.bootstrap, acks="all", **{"linger.ms": 0}))
    failures: list[object] = []
    count, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        producer.produce("alone", b"x" * ALONE_BYTES, on_delivery=lambda error, _: failures.append(error))
        producer.flush(FLUSH_S)
        count += 1
    if any(failures) or len(failures) != count:
        raise RuntimeError(f"{cluster.name}: of {count} records {len(failures)} came back: {failures[-1:]}")
    return count / (time.monotonic() - began)


def _row(title: str, found: dict[tuple[str, str], list[float]]) -> Row:
    unit, more_is_better, note = TITLES[title]
    whole = max if more_is_better else median
    kafka = found.get((title, Kafka.name))
    return Row(
        title,
        unit,
        float(whole(found[title, Sparklog.name])),
        float(whole(kafka)) if kafka else None,
        more_is_better=more_is_better,
        note=note,
    )
