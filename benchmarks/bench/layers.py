"""Where the time of a write and of a read goes, layer by layer: shares of one run.

Of the wall time, what a write of hardly any rows takes is fixed: Spark's job, round trips, the commit. The
rest is the rows', and there CPU time counts, as every core is busy. A run's CPU seconds are those of Spark's
JVM, its Python, and the brokers. They are split by what each piece of work takes alone, in the code that the
run has, on the same rows (``layer_pieces``); what no piece explains is named the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from bench.clusters import Pair, Sparklog
from bench.kafka_clients import create_topic, wait_in_sync
from bench.layer_brokers import Brokers, brokers_alone
from bench.layer_pieces import PARTITIONS, Pieces, pieces
from bench.machine import cpu_of
from bench.report import PartResult, Row
from bench.scale import Scale, say
from bench.spark import Spark, form_of

EMPTY: Final = "empty"
FEW: Final = 4
"""Rows of a job that has next to none."""
SMALL_JOBS: Final = 4
"""Small jobs for each round: they are short."""
AT_LEAST_ONCE: Final = {"delivery": "at-least-once"}
FOLLOWERS: Final = 2
PRODUCER_CRCS: Final = 3
"""Of each column, of the batch, and of the batch with the producer's number in it."""

WRITE_WALL: Final = "write, wall time"
WRITE_CPU: Final = "write, CPU time"
READ_WALL: Final = "read, wall time"
READ_CPU: Final = "read, CPU time"
VIEWS: Final = (WRITE_WALL, WRITE_CPU, READ_WALL, READ_CPU)


@dataclass(slots=True)
class _Taken:
    """What one kind of job took."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[dict[str, float]] = field(default_factory=list)

    @property
    def wall_s(self) -> float:
        return median(self.seconds)

    def cpu_s(self, program: str) -> float:
        return median(one.get(program, 0.0) for one in self.cpu)


class _Runs:
    """The jobs of real Spark upon a real cluster."""

    def __init__(self, spark: Spark, cluster: Sparklog, rows: int) -> None:
        self._spark = spark
        self._cluster = cluster
        self._rows = rows
        self._topics = 0
        self.taken: dict[str, _Taken] = {}

    def warm_up(self) -> None:
        for rows in (self._rows, FEW):
            self._spark.ask("hold", rows=rows)
            self.write("warm", rows, {})
            self.write("warm", rows, AT_LEAST_ONCE)
            self.write("warm", rows, None)
        self._read_topics = {rows: self._topic() for rows in (self._rows, FEW)}
        for rows, topic in self._read_topics.items():
            self._ask(True, "write", topic=topic, rows=rows, options={})
            self.read("warm", rows, is_ours=True)
            self.read("warm", rows, is_ours=False)
        self.taken.clear()

    def one_round(self) -> None:
        for _ in range(SMALL_JOBS):  # first: Spark ends Python workers that were idle for a minute
            self.write("few, empty write", FEW, None)
            self.write("few, at least once", FEW, AT_LEAST_ONCE)
            self.write("few, write", FEW, {})
            self.read("few, empty read", FEW, is_ours=False)
            self.read("few, read", FEW, is_ours=True)
        self.write("write", self._rows, {})
        self.write("empty write", self._rows, None)
        self.read("read", self._rows, is_ours=True)
        self.read("empty read", self._rows, is_ours=False)

    def write(self, name: str, rows: int, options: Mapping[str, str] | None) -> None:
        """``options`` None: to the empty sink."""
        topic = "" if options is None else self._topic()
        self._time(name, options is not None, "write", topic=topic, rows=rows, options=dict(options or {}))

    def read(self, name: str, rows: int, *, is_ours: bool) -> None:
        self._time(name, is_ours, "read", topic=self._read_topics[rows] if is_ours else "", rows=rows)

    def _time(self, name: str, is_ours: bool, what: str, **order: Any) -> None:
        before = self._cpu_s()
        answer = self._ask(is_ours, what, **order)
        after = self._cpu_s()
        taken = self.taken.setdefault(name, _Taken())
        taken.seconds.append(answer["seconds"])
        taken.cpu.append({one: after[one] - before[one] for one in after})
        say(f"layers {name}: {answer['seconds']:.3f} s")

    def _ask(self, is_ours: bool, what: str, **order: Any) -> dict[str, Any]:
        form, servers = (form_of(self._cluster), self._cluster.bootstrap) if is_ours else (EMPTY, "")
        return self._spark.ask(what, form=form, servers=servers, **order)

    def _cpu_s(self) -> dict[str, float]:
        return {"brokers": cpu_of(self._cluster.broker_pids().values()), **self._spark.cpu_s()}

    def _topic(self) -> str:
        self._topics += 1
        topic = f"layers-{self._topics}"
        create_topic(self._cluster.bootstrap, topic, PARTITIONS)
        wait_in_sync(self._cluster.bootstrap, topic)
        return topic


def layers(pair: Pair, scale: Scale) -> PartResult:
    """Our half only. Shares of the wall time and of the CPU time of a write and of a read."""
    cluster = pair.ours
    with Spark() as spark:
        runs = _Runs(spark, cluster, scale.rows)
        runs.warm_up()
        for _ in range(scale.rounds):
            runs.one_round()
    alone = pieces(scale.rows, scale.rounds)
    brokers = brokers_alone(cluster, PARTITIONS, alone.batches)
    taken = runs.taken
    made = [
        *_shares(WRITE_WALL, _write_wall(taken)),
        *_shares(WRITE_CPU, _write_cpu(taken, alone, brokers)),
        *_shares(READ_WALL, _read_wall(taken)),
        *_shares(READ_CPU, _read_cpu(taken, alone, brokers)),
    ]
    said = ", ".join(
        f"{name} {one.wall_s:.3f} s" for name, one in taken.items() if name in ("write", "read", "few, write")
    )
    return PartResult(
        made,
        [
            f"PySpark {spark.version}, local[2], {PARTITIONS} partitions, {scale.rows:,} rows of 110 B, "
            f"medians of {scale.rounds} rounds: {said}.",
            f"A write's empty sink took {taken['empty write'].wall_s:.3f} s, a read's empty source "
            f"{taken['empty read'].wall_s:.3f} s.",
        ],
    )


Layers = Mapping[str, float]
"""Seconds by layer, in the order in which a row meets them."""


def _write_wall(taken: Mapping[str, _Taken]) -> Layers:
    job = taken["few, empty write"].wall_s
    trips = taken["few, at least once"].wall_s
    commit = taken["few, write"].wall_s
    in_spark = taken["empty write"].wall_s - job
    return {
        "Spark: a job without rows": job,
        "Spark: the rows, to an empty sink": in_spark,
        "sparklog: metadata and first batches of a job": trips - job,
        "sparklog: membership and commit": commit - trips,
        "sparklog: the rows": taken["write"].wall_s - in_spark - commit,
    }


def _read_wall(taken: Mapping[str, _Taken]) -> Layers:
    job = taken["few, empty read"].wall_s
    trips = taken["few, read"].wall_s
    in_spark = taken["empty read"].wall_s - job
    return {
        "Spark: a job without rows": job,
        "Spark: the rows, from an empty source": in_spark,
        "sparklog: metadata, cut and first fetches": trips - job,
        "sparklog: the rows": taken["read"].wall_s - in_spark - trips,
    }


def _write_cpu(taken: Mapping[str, _Taken], alone: Pieces, apart: Brokers) -> Layers:
    ours, empty = taken["write"], taken["empty write"]
    python = {
        "Python: partitions of rows": alone.place_s,
        "Python: encode": alone.encode_s,
        "Python: CRC": PRODUCER_CRCS * alone.crc_s,
        "Python: copy": alone.copy_s,
        "Python: network": alone.send_s,
    }
    brokers = {
        "brokers: idle": apart.idle * ours.wall_s,
        "brokers: network, from the client": alone.receive_s,
        "brokers: check of batches": alone.check_s,
        "brokers: append": alone.append_s,
        "brokers: replication, network": FOLLOWERS * (alone.receive_s + alone.send_s),
        "brokers: replication, CRC and append": FOLLOWERS * (alone.crc_s + alone.append_s),
    }
    # Tiny batches go one by one, large ones several at a time: by number they take no more than this.
    left_s = ours.cpu_s("brokers") - sum(brokers.values())
    requests_s = max(0.0, min(apart.tiny_s, left_s))
    return {
        "Spark: JVM": ours.cpu_s("JVM"),
        "Spark: Python of an empty sink": empty.cpu_s("Python"),
        **python,
        "Python: the rest": ours.cpu_s("Python") - empty.cpu_s("Python") - sum(python.values()),
        **brokers,
        "brokers: requests and fetches, by number": requests_s,
        "brokers: the rest, commit included": left_s - requests_s,
    }


def _read_cpu(taken: Mapping[str, _Taken], alone: Pieces, apart: Brokers) -> Layers:
    ours, empty = taken["read"], taken["empty read"]
    python = {
        "Python: network": alone.receive_s,
        "Python: CRC": alone.crc_s,
        "Python: decode": alone.decode_s,
        "Python: rows as Spark wants them": alone.hand_over_s,
    }
    brokers = {"brokers: idle": apart.idle * ours.wall_s, "brokers: network, to the client": alone.send_s}
    return {
        "Spark: JVM": ours.cpu_s("JVM"),
        "Spark: Python of an empty source": empty.cpu_s("Python"),
        **python,
        "Python: the rest": ours.cpu_s("Python") - empty.cpu_s("Python") - sum(python.values()),
        **brokers,
        "brokers: the rest": ours.cpu_s("brokers") - sum(brokers.values()),
    }


def _shares(view: str, found: Layers) -> list[Row]:
    """A difference of two medians may be a little below zero: then that layer takes no time that shows."""
    shown = {layer: max(0.0, seconds) for layer, seconds in found.items()}
    total = sum(shown.values())
    return [
        Row(f"{view}: {layer}", "share", seconds / total, note=f"{seconds:.3f} s")
        for layer, seconds in shown.items()
    ]
