"""What TLS costs clients of each system: its own rate over TLS against its own rate in the clear.

Two clusters of each system run side by side; the ones with TLS use it among brokers too.
"""

from pathlib import Path
from statistics import median
from typing import Final

from bench.aims import at_least
from bench.clients import RECORD_BYTES, fill_evenly
from bench.clusters import Cluster, Kafka, Pair, Sparklog
from bench.kafka_clients import consumer_performance, create_topic, producer_performance, wait_in_sync
from bench.report import PartResult, Row, figure
from bench.scale import Scale, say
from bench.secured_clusters import IN_THE_CLEAR, Access, over_tls, security_files, tls_cluster
from bench.spark import Spark, form_of, has_connector

PARTITIONS: Final = 4
WARM_ROWS: Final = 10_000
LARGE_BATCHES: Final = {"batch.size": "1048576", "linger.ms": "20", "buffer.memory": "67108864"}
TUNED: Final = {"kafka.batch.size": "1048576", "kafka.linger.ms": "20"}
PRODUCER: Final = "ProducerPerformance, batch.size 1 MB"
CONSUMER: Final = "ConsumerPerformance"
WRITE: Final = "Spark batch write"
READ: Final = "Spark batch read, all columns"
UNITS: Final = {PRODUCER: "MB/s", CONSUMER: "MB/s", WRITE: "rows/s", READ: "rows/s"}
WAYS: Final = ("plain", "TLS")


class _Measured:
    """Rates by work, system and way."""

    def __init__(self, spark: Spark, pair: Pair, scale: Scale) -> None:
        self._spark = spark
        self._scale = scale
        self._has_java = pair.with_kafka
        self.rates: dict[tuple[str, str, str], list[float]] = {}

    def prepare(self, cluster: Cluster, access: Access) -> None:
        """All code has run once, and there is something to read."""
        for topic in ("tls-mass", "tls-warm"):
            self._create(cluster, topic, access)
        if self._has_java:
            fill_evenly(cluster, "tls-mass", self._scale.produced_records, access.librdkafka)
        if self._fits(cluster):
            self._write(cluster, "tls-warm", WARM_ROWS, access)
            self._ask(cluster, "read", "tls-warm", access)

    def one_turn(self, cluster: Cluster, way: str, number: int, access: Access) -> None:
        if self._has_java:
            records = self._scale.produced_records
            topic = self._create(cluster, f"tls-produced-{number}", access)
            properties = {**LARGE_BATCHES, **access.java}
            done = producer_performance(cluster.bootstrap, topic, records, RECORD_BYTES, properties)
            self._note(PRODUCER, cluster, way, done.mb_per_s)
            records *= PARTITIONS
            group = f"tls-{number}"
            rate = consumer_performance(cluster.bootstrap, "tls-mass", records, group, access.java)
            self._note(CONSUMER, cluster, way, rate)
        if self._fits(cluster):
            topic = self._create(cluster, f"tls-rows-{number}", access)
            self._spark.ask("hold", rows=self._scale.rows)
            self._note(
                WRITE, cluster, way, self._scale.rows / self._write(cluster, topic, self._scale.rows, access)
            )
            self._note(READ, cluster, way, self._scale.rows / self._ask(cluster, "read", topic, access))

    def _fits(self, cluster: Cluster) -> bool:
        return cluster.name == Sparklog.name or has_connector()

    def _create(self, cluster: Cluster, topic: str, access: Access) -> str:
        create_topic(cluster.bootstrap, topic, PARTITIONS, security=access.librdkafka)
        wait_in_sync(cluster.bootstrap, topic, security=access.librdkafka)
        return topic

    def _write(self, cluster: Cluster, topic: str, rows: int, access: Access) -> float:
        options = {**({} if cluster.name == Sparklog.name else TUNED), **access.spark()}
        order = {"form": form_of(cluster), "servers": cluster.bootstrap, "topic": topic, "rows": rows}
        return float(self._spark.ask("write", **order, options=options)["seconds"])

    def _ask(self, cluster: Cluster, what: str, topic: str, access: Access) -> float:
        order = {"form": form_of(cluster), "servers": cluster.bootstrap, "topic": topic}
        return float(self._spark.ask(what, **order, options=access.spark())["seconds"])

    def _note(self, work: str, cluster: Cluster, way: str, rate: float) -> None:
        self.rates.setdefault((work, cluster.name, way), []).append(rate)
        say(f"security {cluster.name}, {way}, {work}: {rate:,.0f} {UNITS[work]}")

    def rows(self) -> list[Row]:
        return [self._row(work) for work in UNITS if (work, Sparklog.name, "TLS") in self.rates]

    def _row(self, work: str) -> Row:
        kafka = self._ratio(work, Kafka.name)
        told = [self._told(work, name) for name in (Sparklog.name, Kafka.name) if self._ratio(work, name)]
        return Row(
            f"TLS against plain, {work}",
            "ratio of rates",
            self._ratio(work, Sparklog.name) or 0.0,
            kafka,
            note="; ".join([*([at_least(1)] if kafka else []), *told]),
        )

    def _ratio(self, work: str, name: str) -> float | None:
        plain, secure = (self.rates.get((work, name, way)) for way in WAYS)
        return median(secure) / median(plain) if plain and secure else None

    def _told(self, work: str, name: str) -> str:
        plain, secure = (median(self.rates[work, name, way]) for way in WAYS)
        return f"{name} {figure(secure)} against {figure(plain)} {UNITS[work]}"


def tls(pair: Pair, scale: Scale) -> PartResult:
    """No worse than Kafka's is the aim."""
    with security_files() as files:
        rows = _side_by_side(pair, scale, files)
    said = "Two clusters of each side by side, TLS among brokers too; above 1 it costs us less than Kafka."
    return PartResult(rows, [said])


def _side_by_side(pair: Pair, scale: Scale, files: Path) -> list[Row]:
    kinds: list[type[Sparklog] | type[Kafka]] = [Sparklog, Kafka] if pair.with_kafka else [Sparklog]
    secured = [tls_cluster(kind, files) for kind in kinds]
    try:
        for cluster in secured:
            cluster.start()
        for cluster in secured:
            cluster.wait_ready()
        turns: list[tuple[Cluster, str, Access]] = []
        for plain, secure in zip(pair.all(), secured, strict=True):
            turns += [(plain, "plain", IN_THE_CLEAR), (secure, "TLS", over_tls(files))]
        return _rounds(pair, scale, turns)
    finally:
        for cluster in secured:
            cluster.stop()


def _rounds(pair: Pair, scale: Scale, turns: list[tuple[Cluster, str, Access]]) -> list[Row]:
    with Spark() as spark:
        measured = _Measured(spark, pair, scale)
        for cluster, _, access in turns:
            measured.prepare(cluster, access)
        for number in range(scale.rounds):
            for cluster, way, access in turns[:: -1 if number % 2 else 1]:
                measured.one_turn(cluster, way, number, access)
    return measured.rows()
