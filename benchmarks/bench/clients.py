"""What Kafka's own clients get: mass in both directions, delays under a light load, requests one by one."""

import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka import Producer

from bench.aims import at_least
from bench.clusters import Cluster, Pair
from bench.kafka_clients import (
    consumer_performance,
    create_topic,
    producer_performance,
    quiet,
    wait_in_sync,
)
from bench.report import PartResult, Row
from bench.scale import Scale, say
from bench.turns import Tally, found, in_turns, spending

PARTITIONS: Final = 4
RECORD_BYTES: Final = 1_000
LIGHT_PER_S: Final = 1_000
ALONE_BYTES: Final = 100
FLUSH_S: Final = 30.0
FILL_S: Final = 120.0
BATCH_BYTES: Final = 16_384
"""As Java's producer has it by default."""

READ: Final = "ConsumerPerformance, 1,000 B records"
P50, P99 = (f"acks=all at {LIGHT_PER_S:,} records/s of 1,000 B, {name}" for name in ("p50", "p99"))
ALONE: Final = "small requests one after another, one partition"
TITLES: Final = {
    READ: ("MB/s", True, f"Java; partitions of one size; without the time of joining; {at_least(1)}"),
    P50: ("ms", False, f"Java's ProducerPerformance; CPU of one record; {at_least(1)}"),
    P99: ("ms", False, f"the same; {at_least(1)}"),
    ALONE: ("1/s", True, f"librdkafka, acks=all, one record each; {at_least(1.1)}"),
}


def clients(pair: Pair, scale: Scale) -> PartResult:
    """Rounds of Java's tools, and many short ones of small requests."""
    tally = Tally()
    for cluster in pair.all():
        create_topic(cluster.bootstrap, "mass", PARTITIONS)
        create_topic(cluster.bootstrap, "alone", 1)
        for topic in ("mass", "alone"):
            wait_in_sync(cluster.bootstrap, topic)
        if pair.with_kafka:
            fill_evenly(cluster, "mass", scale.produced_records)
        one_by_one(cluster, scale.short_round_s)
    for number, cluster in in_turns(pair, scale.rounds if pair.with_kafka else 0):
        _java(cluster, scale, number, tally)
    for _, cluster in in_turns(pair, scale.short_rounds):
        with spending(cluster) as spent:
            count = one_by_one(cluster, scale.short_round_s)
        tally.note_rate(ALONE, cluster, spent, count)
        say(f"clients {cluster.name}: {count / spent.seconds:,.0f} small requests/s")
    return PartResult(found(*(_row(tally, title) for title in TITLES)), [])


def fill_evenly(
    cluster: Cluster, topic: str, records_each: int, security: Mapping[str, object] | None = None
) -> None:
    """As much to each partition. Java's producer chooses them by chance, and Java's consumer waits again and
    again where one of a leader's partitions is longer than the other: chance would decide the figure.
    """
    settings = {"batch.size": BATCH_BYTES, "linger.ms": 5, **(security or {})}
    producer = Producer(quiet(cluster.bootstrap, acks="all", **settings))
    value = b"x" * RECORD_BYTES
    for _ in range(records_each):
        for partition in range(PARTITIONS):
            while True:
                try:
                    producer.produce(topic, value, partition=partition)
                except BufferError:
                    producer.poll(0.1)
                else:
                    break
        producer.poll(0)
    if left := producer.flush(FILL_S):
        raise RuntimeError(f"{cluster.name}: {left} records were not written in {FILL_S:.0f} s")


def _java(cluster: Cluster, scale: Scale, number: int, tally: Tally) -> None:
    """Of the topic that was written before. The light load is of some seconds."""
    records = int(LIGHT_PER_S * scale.latency_s)
    with spending(cluster) as spent:
        light = producer_performance(
            cluster.bootstrap, "alone", records, RECORD_BYTES, {"acks": "all"}, per_second=LIGHT_PER_S
        )
    for title, delay_ms in (P50, light.p50_ms), (P99, light.p99_ms):
        tally.note(title, cluster, delay_ms)
        tally.note_cpu(title, cluster, spent, records)
    records = scale.produced_records * PARTITIONS
    with spending(cluster) as spent:
        read = consumer_performance(cluster.bootstrap, "mass", records, f"mass-{number}")
    tally.note(READ, cluster, read)
    tally.note_cpu(READ, cluster, spent, records * RECORD_BYTES / 1e6)
    say(f"clients {cluster.name}: {light.p50_ms:.0f} and {light.p99_ms:.0f} ms; read at {read:.0f} MB/s")


def one_by_one(cluster: Cluster, seconds: float) -> int:
    """How many requests a new producer makes that waits for each answer, to the topic ``alone``."""
    return _requests(Producer(_alone(cluster, {})), seconds)


def requests_per_s(cluster: Cluster, seconds: float, security: Mapping[str, object]) -> float:
    """Such requests of a producer that is connected, and logged in, before the clock runs."""
    producer = Producer(_alone(cluster, security))
    _requests(producer, 0)
    began = time.monotonic()
    return _requests(producer, seconds) / (time.monotonic() - began)


def _alone(cluster: Cluster, security: Mapping[str, object]) -> dict[str, object]:
    return quiet(cluster.bootstrap, acks="all", **{"linger.ms": 0, **security})


def _requests(producer: Producer, seconds: float) -> int:
    """One at least."""
    failures: list[object] = []
    count, began = 0, time.monotonic()
    while not count or time.monotonic() - began < seconds:
        producer.produce("alone", b"x" * ALONE_BYTES, on_delivery=lambda error, _: failures.append(error))
        producer.flush(FLUSH_S)
        count += 1
    if any(failures) or len(failures) != count:
        raise RuntimeError(f"of {count} records {len(failures)} came back: {failures[-1:]}")
    return count


def _row(tally: Tally, title: str) -> Row | None:
    unit, more_is_better, note = TITLES[title]
    return tally.row(title, unit, more_is_better=more_is_better, note=note)
