"""The parts of a run: each puts one kind of load on both clusters, turns taken, and returns its rows."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Final

from bench.aims import at_least
from bench.before import before
from bench.clients import clients
from bench.clusters import Cluster, Kafka, KafkaBrokers, Pair, Sparklog
from bench.control import controller
from bench.disk import compaction, recovery, storage
from bench.faults import faults, writes_again
from bench.groups import groups
from bench.kafka_clients import (
    SteadyLoad,
    create_topic,
    first_write,
    producer_performance,
    replicas,
    wait_in_sync,
)
from bench.latency import latency
from bench.layers import layers
from bench.machine import memory_of, wait_until
from bench.many import partitions
from bench.operating import operating
from bench.overview import overview
from bench.remote import remote
from bench.report import PartResult, Row, longest_gap
from bench.scale import FULL, Scale, say
from bench.security import security
from bench.spark import Spark, form_of, has_connector
from bench.spark_limits import spark
from bench.tls_against_plain import tls
from bench.transactions import transactions
from bench.turns import Spent, Tally, found, in_turns, spending
from bench.typed import typed
from bench.typed_start import typed_start
from bench.writes import writes

PARTITIONS: Final = 4
VALUE_BYTES: Final = 100
TUNED: Final = {"kafka.batch.size": "1048576", "kafka.linger.ms": "20"}
TUNED_LZ4: Final = {**TUNED, "kafka.compression.type": "lz4"}
LZ4: Final = {"kafka.compression.type": "lz4"}
AT_LEAST_ONCE: Final = {"delivery": "at-least-once"}


def start(pair: Pair, scale: Scale) -> PartResult:
    """Seconds from the command to the first acknowledged write, to a topic of three replicas made for it."""
    seconds: dict[str, list[float]] = {}
    story: list[tuple[str, float]] = []
    kinds: list[type[Sparklog] | type[KafkaBrokers]] = [Sparklog]
    if pair.with_kafka:
        kinds.append(pair.kafka_kind)
    for _ in range(scale.starts):
        for kind in kinds:
            cluster = kind()
            try:
                began = time.monotonic()
                cluster.start()
                first_write(cluster.bootstrap)
                seconds.setdefault(kind.name, []).append(time.monotonic() - began)
                if isinstance(cluster, Sparklog):
                    cluster.wait_ready()
                    story = cluster.start_story()
            finally:
                cluster.stop()
            say(f"start {kind.name}: {seconds[kind.name][-1]:.1f} s")
    kafka = seconds.get(Kafka.name)
    row = Row(
        "start to first acknowledged write, ZooKeeper included",
        "s",
        median(seconds[Sparklog.name]),
        median(kafka) if kafka else None,
        more_is_better=False,
        note=f"median of {scale.starts}",
    )
    told = "; ".join(f"{what} {at:.1f}" for what, at in story)
    return PartResult([row], [f"Where our last start's seconds went, from its begin on: {told}."])


def rows(pair: Pair, scale: Scale) -> PartResult:
    """Spark batch writes and reads of rows with a 10 B key and a 100 B value; one topic for each turn."""
    with Spark() as spark:
        timed = _RowTimes(spark, pair, scale)
        timed.warm_up()
        for number in range(scale.rounds):
            for cluster in timed.clusters[:: -1 if number % 2 else 1]:
                timed.one_turn(cluster, number)
    return PartResult(
        timed.rows(), [f"PySpark {spark.version}, local[2], {PARTITIONS} partitions, {scale.rows:,} rows."]
    )


class _RowTimes:
    """Times by work and system, and the rows made of them."""

    def __init__(self, spark: Spark, pair: Pair, scale: Scale) -> None:
        self._spark = spark
        self._scale = scale
        self.clusters = [c for c in pair.all() if c.name == Sparklog.name or has_connector()]
        self._clients_write = pair.with_kafka
        self._tally = Tally()

    def warm_up(self) -> None:
        for cluster in self.clusters:
            self._write(cluster, "warm", {}, 10_000)
            self._spark.ask("read", form=form_of(cluster), servers=cluster.bootstrap, topic="warm")
            if self._clients_write:
                topic = self._topic(cluster, "by-client")
                producer_performance(cluster.bootstrap, topic, self._scale.rows, VALUE_BYTES, CLIENT_BATCHES)
        self._tally = Tally()

    def one_turn(self, cluster: Cluster, number: int) -> None:
        ours = cluster.name == Sparklog.name
        self._write(cluster, f"plain-{number}", {})
        if ours:
            self._write(cluster, f"each-{number}", AT_LEAST_ONCE, work="write, at least once")
        self._write(cluster, f"lz4-{number}", LZ4 if ours else TUNED_LZ4, work="write, lz4")
        if not ours:
            self._write(cluster, f"tuned-{number}", TUNED, work="write, tuned")
        self._read(cluster, f"plain-{number}", "read")
        self._read(cluster, f"plain-{number}", "count")
        if self._clients_write:
            self._read(cluster, "by-client", "read", work="read by-client")

    def _topic(self, cluster: Cluster, topic: str) -> str:
        create_topic(cluster.bootstrap, topic, PARTITIONS)
        return topic

    def _write(
        self, cluster: Cluster, topic: str, options: Mapping[str, str], rows: int = 0, work: str = "write"
    ) -> None:
        self._topic(cluster, topic)
        order = {"form": form_of(cluster), "servers": cluster.bootstrap, "topic": topic}
        if not rows:  # the frame is made and held before the clock runs
            rows = self._scale.rows
        with spending(cluster) as spent:
            answer = self._spark.ask("write", **order, rows=rows, options=dict(options))
        self._note(cluster, work, answer["seconds"], spent)

    def _read(self, cluster: Cluster, topic: str, what: str, work: str = "") -> None:
        with spending(cluster) as spent:
            answer = self._spark.ask(what, form=form_of(cluster), servers=cluster.bootstrap, topic=topic)
        if answer.get("rows", self._scale.rows) != self._scale.rows:
            raise RuntimeError(
                f"{cluster.name}: {answer['rows']:,} rows in {topic}, written {self._scale.rows:,}"
            )
        self._note(cluster, work or what, answer["seconds"], spent)

    def _note(self, cluster: Cluster, work: str, seconds: float, spent: Spent) -> None:
        self._tally.note(work, cluster, self._scale.rows / seconds)
        self._tally.note_cpu(work, cluster, spent, self._scale.rows)
        say(f"rows {cluster.name} {work}: {seconds:.2f} s, brokers' CPU {spent.brokers_cpu_s:.2f} s")

    def rows(self) -> list[Row]:
        works = [
            ("Spark batch write, default options", "write", "write", "exactly once; Kafka's at least once"),
            ("the same, at least once", "write, at least once", "write", ""),
            ("exactly once, Kafka tuned", "write", "write, tuned", "Kafka: batch.size 1 MB, linger 20 ms"),
            ("the same, lz4", "write, lz4", "write, lz4", "Kafka tuned as above"),
            ("Spark batch read, all columns", "read", "read", ""),
            ("Spark batch count", "count", "count", ""),
            (
                "Spark batch read of what a Kafka client wrote",
                "read by-client",
                "read by-client",
                f"ProducerPerformance, {VALUE_BYTES} B values, batches of 64 KB",
            ),
        ]
        return found(
            *(
                self._tally.row(title, "rows/s", work=ours, kafka_work=kafka, note=note)
                for title, ours, kafka, note in works
            )
        )


LARGE_BATCHES: Final = {"batch.size": "1048576", "linger.ms": "20", "buffer.memory": "67108864"}
CLIENT_BATCHES: Final = {"batch.size": "65536", "linger.ms": "5"}


def producer(pair: Pair, scale: Scale) -> PartResult:
    """Java's ProducerPerformance, 1,000 B records, to a topic of one partition and to one of several."""
    if not pair.with_kafka:
        return PartResult([], ["Left out: ProducerPerformance comes with Kafka's jars, which are not there."])
    tally = Tally()
    delays: dict[tuple[str, str], str] = {}
    settings = {"default settings": {}, "batch.size 1 MB, linger 20 ms": LARGE_BATCHES}
    aims = dict(zip(settings, (1, 1.3), strict=True))
    for cluster in pair.all():
        create_topic(cluster.bootstrap, "performance-warm", PARTITIONS)
        producer_performance(cluster.bootstrap, "performance-warm", scale.produced_records // 4, 1000)
    for number, cluster in in_turns(pair, scale.rounds):
        for title, properties in settings.items():
            topic = f"performance-{number}-{len(properties)}"
            create_topic(cluster.bootstrap, topic, PARTITIONS)
            with spending(cluster) as spent:
                done = producer_performance(
                    cluster.bootstrap, topic, scale.produced_records, 1000, properties
                )
            tally.note(title, cluster, done.mb_per_s)
            tally.note_cpu(title, cluster, spent, scale.produced_records * 1000 / 1e6)
            delays[title, cluster.name] = done.latency_ms
            say(f"producer {cluster.name}, {title}: {done.mb_per_s:.1f} MB/s; {done.latency_ms}")
    made = found(
        *(
            tally.row(
                f"ProducerPerformance, 1,000 B records, {title}",
                "MB/s",
                work=title,
                note=f"median of {scale.rounds}; {at_least(aims[title])}",
            )
            for title in settings
        )
    )
    notes = [f"Delays with {title}, {name}: {text}." for (title, name), text in delays.items()]
    return PartResult(made, notes)


def memory(pair: Pair, scale: Scale) -> PartResult:
    """Resident memory of each broker after whatever this run did before; alone, after 100 MB written."""
    largest: dict[str, tuple[float, float]] = {}
    notes = []
    for cluster in pair.all():
        create_topic(cluster.bootstrap, "memory", PARTITIONS)
        with SteadyLoad(cluster.bootstrap, "memory", PARTITIONS, per_second=250, value=b"v" * 10_000):
            time.sleep(10 if scale is FULL else 3)
        brokers = {broker: memory_of([pid]) for broker, pid in cluster.broker_pids().items()}
        others = {role: memory_of([pid]) for role, pid in cluster.other_pids().items()}
        largest[cluster.name] = (
            max(used.pss_mb for used in brokers.values()),
            max(used.rss_mb for used in brokers.values()),
        )
        told = [f"broker {broker} {used.pss_mb:.0f} ({used.rss_mb:.0f})" for broker, used in brokers.items()]
        told += [f"{role} {used.pss_mb:.0f} ({used.rss_mb:.0f})" for role, used in others.items()]
        total = sum(used.pss_mb for used in [*brokers.values(), *others.values()])
        notes.append(f"{cluster.name}, PSS (RSS) in MB: {', '.join(told)}; together {total:.0f}.")
        say(f"memory {notes[-1]}")
    kafka = largest.get(Kafka.name)
    made = [
        Row(
            f"memory of the largest broker after the work, {kind}",
            "MB",
            largest[Sparklog.name][index],
            kafka[index] if kafka else None,
            more_is_better=False,
            note="Kafka: -Xmx1g" if kafka else "",
        )
        for index, kind in enumerate(("PSS", "RSS"))
    ]
    return PartResult(made, notes)


GAP_PARTITIONS: Final = 6
GAP_SETTLE_S: Final = 4.0


def gaps(pair: Pair, scale: Scale) -> PartResult:
    """Longest time without an acks=all acknowledgement on one partition after SIGKILL of a broker.

    librdkafka writes 50 records a second to each of six partitions. Each broker in turn is killed, waited for
    until it is in every ISR again, and left alone for some seconds.
    """
    worst: dict[str, dict[str, list[float]]] = {}
    notes = []
    for cluster in pair.all():
        worst[cluster.name] = {"led": [], "followed": []}
        create_topic(cluster.bootstrap, "gaps", GAP_PARTITIONS)
        wait_in_sync(cluster.bootstrap, "gaps")
        with SteadyLoad(cluster.bootstrap, "gaps", GAP_PARTITIONS, per_second=50) as load:
            time.sleep(GAP_SETTLE_S)
            for broker in list(cluster.broker_pids())[: scale.kills]:
                _one_kill(cluster, broker, load, worst[cluster.name])
        kills = ", ".join(
            f"{led:.2f} / {followed:.2f}"
            for led, followed in zip(worst[cluster.name]["led"], worst[cluster.name]["followed"], strict=True)
        )
        notes.append(f"{cluster.name}, each kill in s, led / only followed: {kills}.")
    kafka = worst.get(Kafka.name)
    made = [
        Row(
            f"longest gap after SIGKILL, partitions it {role}",
            "s",
            max(worst[Sparklog.name][kind]),
            max(kafka[kind]) if kafka else None,
            more_is_better=False,
            note=f"worst of {scale.kills} kills",
        )
        for kind, role in (("led", "led"), ("followed", "only followed"))
    ]
    return PartResult(made, notes)


def _one_kill(cluster: Cluster, broker: int, load: SteadyLoad, worst: dict[str, list[float]]) -> None:
    led = {number for number, (leader, _) in replicas(cluster.bootstrap, "gaps").items() if leader == broker}
    process = cluster.broker_pids()[broker]
    killed = time.monotonic()
    cluster.kill(broker)
    # Our supervisor relaunches a broker, Kafka has none: its broker stays away until all is written again.
    wait_until(
        lambda: all(writes_again(acks, killed) for acks in load.acks.values()),
        60,
        "all partitions are written",
    )
    cluster.revive(broker)
    time.sleep(1)
    wait_in_sync(cluster.bootstrap, "gaps")
    time.sleep(GAP_SETTLE_S)
    if cluster.broker_pids()[broker] == process:
        raise RuntimeError(f"{cluster.name}: broker {broker} outlived its SIGKILL")
    now = time.monotonic()
    gap = {number: longest_gap(list(acks), killed, now) for number, acks in load.acks.items()}
    worst["led"].append(max((gap[number] for number in led), default=0.0))
    worst["followed"].append(max((gap[number] for number in gap if number not in led), default=0.0))
    told = f"led {worst['led'][-1]:.2f} s, only followed {worst['followed'][-1]:.2f} s"
    say(f"gaps {cluster.name}, broker {broker} killed: {told}")


PARTS: Final[dict[str, Callable[[Pair, Scale], PartResult]]] = {
    "start": start,
    "rows": rows,
    "spark": spark,
    "layers": layers,
    "producer": producer,
    "clients": clients,
    "latency": latency,
    "groups": groups,
    "transactions": transactions,
    "writes": writes,
    "typed": typed,
    "typed_start": typed_start,
    "tls": tls,
    "security": security,
    "memory": memory,
    "gaps": gaps,
}
BESIDE_KRAFT: Final = ("start", "producer", "clients", "memory", "gaps")
"""What is measured beside the line of Kafka that has no ZooKeeper, too."""
LIMITS: Final[dict[str, Callable[[Pair, Scale], PartResult]]] = {
    "faults": faults,
    "controller": controller,
    "partitions": partitions,
    "recovery": recovery,
    "storage": storage,
    "compaction": compaction,
    "remote": remote,
    "operating": operating,
    "overview": overview,
    "before": before,
}
"""What faults, operations, many partitions and a remote store cost, and the disk alone: the results' second
section.
"""
