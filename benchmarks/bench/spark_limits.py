"""Spark's writes, reads and streams beside what Spark itself allows: an empty Python sink and source.

All are measured in one run, warm, in turns whose order is flipped each round. A small job of its kind goes
before each, because Spark ends Python workers that were idle for a minute. Each job's CPU seconds are told
too, of the brokers, the JVM and Python.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from bench.clusters import Cluster, Kafka, Pair, Sparklog
from bench.kafka_clients import create_topic, producer_performance, wait_in_sync
from bench.machine import cpu_of
from bench.report import PartResult, Row, figure
from bench.scale import Scale, say
from bench.spark import Spark, form_of, has_connector
from bench.turns import quartile_of

PARTITIONS: Final = 4
VALUE_BYTES: Final = 100
WARM_ROWS: Final = 10_000
STREAMED: Final = 5
"""How many times the rows of a write the longer stream has."""

EMPTY: Final = "empty"
TUNED: Final = {"kafka.batch.size": "1048576", "kafka.linger.ms": "20", "kafka.compression.type": "lz4"}
CLIENT_BATCHES: Final = {"batch.size": "65536", "linger.ms": "5"}

WRITES: Final[Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]]] = {
    "write, default options": ({}, {}),
    "write, at least once": ({"delivery": "at-least-once"}, {}),
    "write, tuned, lz4": ({"kafka.compression.type": "lz4"}, TUNED),
}
"""Our options and Kafka's."""

READS: Final = {"read, all columns": "read", "count": "count", "sum of lengths": "lengths"}
BY_CLIENT: Final = "read of what a Kafka client wrote"


@dataclass(slots=True)
class _Job:
    """What one kind of work took, by system: seconds, and CPU seconds by program."""

    rows: int
    empty: str = ""
    """Which work of the empty sink or source it is compared with; its own, if this is empty."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[dict[str, float]]] = field(default_factory=dict)


class _Measured:
    def __init__(self, spark: Spark, pair: Pair, scale: Scale) -> None:
        self._spark = spark
        self._scale = scale
        self._with_client = pair.with_kafka
        self._clusters = [one for one in pair.all() if one.name == Sparklog.name or has_connector()]
        self.jobs: dict[str, _Job] = {}

    def prepare(self) -> None:
        """Topics to be read, and all code run once."""
        for cluster in self._clusters:
            self._topic(cluster, "warm")
            self._topic(cluster, "long")
            options = {} if cluster.name == Sparklog.name else TUNED
            self._ask(cluster, "write", topic="warm", rows=WARM_ROWS, options=options)
            for _ in range(STREAMED):
                self._ask(cluster, "write", topic="long", rows=self._scale.rows, options=options)
            for what in READS.values():
                self._ask(cluster, what, topic="warm")
            self._ask(cluster, "available_now", topic="warm", rows=WARM_ROWS)
            if self._with_client:
                self._topic(cluster, "by-client")
                producer_performance(
                    cluster.bootstrap, "by-client", self._scale.rows, VALUE_BYTES, CLIENT_BATCHES
                )
        for what in ("write", *READS.values(), "available_now"):
            more = {"options": {}} if what == "write" else {}
            self._spark.ask(what, form=EMPTY, servers="", topic="", rows=WARM_ROWS, **more)

    def one_round(self, number: int) -> None:
        turns: list[Cluster | None] = [*self._clusters, None]
        for cluster in turns[:: -1 if number % 2 else 1]:
            if cluster is None:
                self._empty_turn()
            else:
                self._turn(cluster, number)

    def _turn(self, cluster: Cluster, number: int) -> None:
        rows = self._scale.rows
        for index, (work, options) in enumerate(WRITES.items()):
            topic = self._topic(cluster, f"limits-{number}-{index}")
            chosen = dict(options[0 if cluster.name == Sparklog.name else 1])
            self._time(work, cluster, "write", rows, empty="write", topic=topic, options=chosen)
        for work, what in READS.items():
            self._time(work, cluster, what, rows, topic=f"limits-{number}-0")
        if self._with_client:
            self._time(BY_CLIENT, cluster, "read", rows, empty="read, all columns", topic="by-client")
        self._time("AvailableNow", cluster, "available_now", rows, topic=f"limits-{number}-0")
        self._time("AvailableNow, long", cluster, "available_now", STREAMED * rows, topic="long")

    def _empty_turn(self) -> None:
        rows = self._scale.rows
        self._time("write", None, "write", rows, options={})
        for work, what in READS.items():
            self._time(work, None, what, rows)
        self._time("AvailableNow", None, "available_now", rows)
        self._time("AvailableNow, long", None, "available_now", STREAMED * rows)

    # ---- one job -------------------------------------------------------------------------------------------

    def _time(
        self, work: str, cluster: Cluster | None, what: str, rows: int, *, empty: str = "", **order: Any
    ) -> None:
        """RuntimeError if it has not taken as many rows as there are."""
        name = EMPTY if cluster is None else cluster.name
        job = self.jobs.setdefault(work, _Job(rows, empty))
        if cluster is None or what in ("write", "available_now"):
            order["rows"] = rows
        if what == "write":  # its frame is made and held before anything is counted
            self._spark.ask("hold", rows=rows)
        small = {"rows": WARM_ROWS} if "rows" in order else {}
        self._ask(cluster, what, **{**order, **small, "topic": "" if cluster is None else "warm"})
        before = self._cpu_s(cluster)
        answer = self._ask(cluster, what, **order)
        after = self._cpu_s(cluster)
        if answer.get("rows", rows) != rows:
            raise RuntimeError(f"{name}, {work}: {answer['rows']:,} rows, there are {rows:,}")
        job.seconds.setdefault(name, []).append(answer["seconds"])
        job.cpu.setdefault(name, []).append({one: after[one] - before[one] for one in after})
        say(f"spark {name}, {work}: {answer['seconds']:.2f} s; CPU {_told(job.cpu[name][-1])}")

    def _ask(self, cluster: Cluster | None, what: str, **order: Any) -> dict[str, Any]:
        form, servers = (EMPTY, "") if cluster is None else (form_of(cluster), cluster.bootstrap)
        return self._spark.ask(what, **{"form": form, "servers": servers, "topic": "", **order})

    def _cpu_s(self, cluster: Cluster | None) -> dict[str, float]:
        brokers = {} if cluster is None else {"brokers": cpu_of(cluster.broker_pids().values())}
        return {**brokers, **self._spark.cpu_s()}

    def _topic(self, cluster: Cluster, topic: str) -> str:
        create_topic(cluster.bootstrap, topic, PARTITIONS)
        wait_in_sync(cluster.bootstrap, topic)
        return topic


def spark(pair: Pair, scale: Scale) -> PartResult:
    """Rows of a 10 B key and a 100 B value; medians of the rounds."""
    with Spark() as driver:
        measured = _Measured(driver, pair, scale)
        measured.prepare()
        for number in range(scale.rounds):
            measured.one_round(number)
    jobs = measured.jobs
    made = [_row(work, job, jobs) for work, job in jobs.items() if Sparklog.name in job.seconds]
    notes = [
        f"PySpark {driver.version}, local[2], {PARTITIONS} partitions, {scale.rows:,} rows; "
        f"{STREAMED} times as many in the long stream."
    ]
    notes += [
        f"CPU of {name}, {work}, median in s: {_told(_median(found))}."
        for work, job in jobs.items()
        for name, found in job.cpu.items()
    ]
    return PartResult(made, notes)


def _row(work: str, job: _Job, jobs: Mapping[str, _Job]) -> Row:
    ours = job.rows / median(job.seconds[Sparklog.name])
    kafka = job.seconds.get(Kafka.name)
    limit = jobs[job.empty or work]
    empty = limit.rows / median(limit.seconds[EMPTY])
    kind = "sink" if job.empty == "write" else "source"
    return Row(
        f"Spark: {work}",
        "rows/s",
        ours,
        job.rows / median(kafka) if kafka else None,
        note=f"{figure(ours / empty)} of an empty {kind}'s {figure(empty)}",
        cpu_us=_brokers_us(job, Sparklog.name),
        kafka_cpu_us=_brokers_us(job, Kafka.name),
    )


def _brokers_us(job: _Job, name: str) -> float | None:
    """The brokers' CPU of one row."""
    return quartile_of([one["brokers"] * 1e6 / job.rows for one in job.cpu.get(name, [])])


def _median(found: list[dict[str, float]]) -> dict[str, float]:
    return {name: median(one[name] for one in found) for name in found[0]}


def _told(cpu: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {seconds:.2f}" for name, seconds in cpu.items())
