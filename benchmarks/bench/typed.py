"""Typed topics beside JSON: Kafka's, and that of our own untyped topics; and beside Parquet files.

Rows have 20 columns. All ways take turns in one Spark; figures are ratios of medians of one run.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.aims import at_least, at_most
from bench.clusters import Cluster, Pair
from bench.kafka_clients import create_topic, wait_in_sync
from bench.report import PartResult, Row
from bench.scale import Scale, say
from bench.spark import Spark, form_of, has_connector
from bench.spark_limits import TUNED
from bench.spark_typed import PARQUET, SCHEMA
from bench.turns import gain_row, quartile_of, ratio_row, spending
from bench.typed_bytes import sent_mb

PARTITIONS: Final = 4
ONE: Final = "x0"
TIME: Final = "at0"
SHARE: Final = 100
"""One row in so many is left by a condition."""
WARM_ROWS: Final = 10_000
MORE_ROUNDS: Final = 5
"""Further reads of our own typed topic, which take seconds only."""

TYPED: Final = "typed"
UNTYPED: Final = "untyped + JSON"
DEFAULTS: Final = "Kafka's defaults + JSON"
KAFKA: Final = "Kafka, tuned + JSON"
FILES: Final = "Parquet"


@dataclass(frozen=True, slots=True)
class Way:
    """Where rows go to and come from. No ``cluster``: files."""

    cluster: Cluster | None
    topic: str
    as_json: bool = True
    options: Mapping[str, str] = field(default_factory=dict)

    def order(self, topic: str) -> dict[str, Any]:
        form, servers = (
            (PARQUET, "") if self.cluster is None else (form_of(self.cluster), self.cluster.bootstrap)
        )
        return {"form": form, "servers": servers, "topic": topic, "as_json": self.as_json}


@dataclass(slots=True)
class Taken:
    """Seconds of each round, and CPU seconds of Spark and of the brokers."""

    seconds: list[float] = field(default_factory=list)
    spark_cpu: list[float] = field(default_factory=list)
    brokers_cpu: list[float] = field(default_factory=list)


def first_hundredth(rows: int) -> str:
    """A condition that is true of so many: rows are in the order of their times, a millisecond each."""
    until = datetime.fromtimestamp(rows // SHARE / 1_000, UTC)
    return f"{TIME} < '{until.isoformat(timespec='milliseconds')}'"


class _Measured:
    """All ways through all rounds; ``taken`` by work and way."""

    def __init__(self, spark: Spark, pair: Pair, scale: Scale, folder: Path) -> None:
        self._spark = spark
        self._rows = scale.typed_rows
        self.ways = {
            TYPED: Way(pair.ours, "typed", as_json=False),
            UNTYPED: Way(pair.ours, "untyped"),
            FILES: Way(None, str(folder), as_json=False),
        }
        if pair.kafka is not None and has_connector():
            self.ways[KAFKA] = Way(pair.kafka, "tuned", options=TUNED)
            self.ways[DEFAULTS] = Way(pair.kafka, "defaults")
        self.taken: dict[tuple[str, str], Taken] = {}

    def warm_up(self) -> None:
        """All code has run once, and every way gives all rows back."""
        for name, way in self.ways.items():
            self._write(name, "warm", WARM_ROWS)
            order = way.order(self._place(way, "warm"))
            found = self._spark.ask("count_column", **order, column=ONE)["rows"]
            if found != WARM_ROWS:
                raise RuntimeError(f"{name}: {found:,} of {WARM_ROWS:,} rows have a value in {ONE}")
            self._read(name, "all", "warm")
        self.taken.clear()

    def one_round(self, number: int) -> None:
        step = -1 if number % 2 else 1
        names = [name for name in self.ways if name != DEFAULTS or number == 0]  # which take a minute
        for name in names[::step]:
            self._write(name, str(number), self._rows)
        for name in [one for one in names if one != DEFAULTS][::step]:
            for what in ("one", "all")[::step]:
                self._read(name, what, str(number))

    def our_reads(self, number: int) -> None:
        for what in ("one", "where", "all")[:: -1 if number % 2 else 1]:
            self._read(TYPED, what, "0")

    def check_where(self) -> None:
        """RuntimeError unless the condition leaves a hundredth of the rows."""
        order = {**self.ways[TYPED].order("typed-0"), "column": ONE, "where": first_hundredth(self._rows)}
        if (found := self._spark.ask("count_column", **order)["rows"]) != self._rows // SHARE:
            raise RuntimeError(f"{found:,} of {self._rows:,} rows where {order['where']}")

    def _place(self, way: Way, suffix: str) -> str:
        return f"{way.topic}/{suffix}" if way.cluster is None else f"{way.topic}-{suffix}"

    def _write(self, name: str, suffix: str, rows: int) -> None:
        way = self.ways[name]
        place = self._place(way, suffix)
        if way.cluster is not None:
            config = {} if way.as_json else {"sparklog.schema": SCHEMA}
            create_topic(way.cluster.bootstrap, place, PARTITIONS, config=config)
            wait_in_sync(way.cluster.bootstrap, place)
        self._spark.ask("hold_columns", rows=rows)
        self._time("write", name, "write_columns", place, rows=rows, options=dict(way.options))

    def _read(self, name: str, what: str, suffix: str) -> None:
        terms = {"one": {"column": ONE}, "where": {"where": first_hundredth(self._rows)}, "all": {}}[what]
        self._time(what, name, "read_columns", self._place(self.ways[name], suffix), **terms)

    def _time(self, work: str, name: str, what: str, place: str, **order: Any) -> None:
        way = self.ways[name]
        taken = self.taken.setdefault((work, name), Taken())
        before = sum(self._spark.cpu_s().values())
        if way.cluster is None:
            seconds = self._spark.ask(what, **way.order(place), **order)["seconds"]
        else:
            with spending(way.cluster) as spent:
                seconds = self._spark.ask(what, **way.order(place), **order)["seconds"]
            taken.brokers_cpu.append(spent.brokers_cpu_s)
        taken.seconds.append(seconds)
        taken.spark_cpu.append(sum(self._spark.cpu_s().values()) - before)
        say(f"typed {work}, {name}: {seconds:.2f} s, Spark's CPU {taken.spark_cpu[-1]:.2f} s")

    # ---- rows ----------------------------------------------------------------------------------------------

    def against_kafka(self, title: str, work: str, other: str, note: str) -> Row:
        kafka = self.taken.get((work, other))
        ours = self.taken[work, TYPED]
        return Row(
            title,
            "rows/s",
            self._rows / median(ours.seconds),
            self._rows / median(kafka.seconds) if kafka else None,
            note=note,
            cpu_us=self._cpu_us(ours),
            kafka_cpu_us=self._cpu_us(kafka) if kafka else None,
        )

    def _cpu_us(self, taken: Taken) -> float | None:
        return quartile_of([spent * 1e6 / self._rows for spent in taken.brokers_cpu])

    def spark_cpu_row(self) -> Row:
        kafka = self.taken.get(("one", KAFKA))
        return Row(
            "the same, CPU of Spark instead of time",
            "s",
            median(self.taken["one", TYPED].spark_cpu),
            median(kafka.spark_cpu) if kafka else None,
            more_is_better=False,
            note=at_least(5) if kafka else "",
        )

    def against_ours(self, title: str, work: str, other: str, note: str = "") -> Row:
        return gain_row(title, self.taken[work, TYPED].seconds, self.taken[work, other].seconds, note)

    def one_against_all(self, title: str, figures: str, note: str) -> Row:
        found = {what: list(getattr(self.taken[what, TYPED], figures)) for what in ("one", "all")}
        return ratio_row(title, found, "s", note)


def typed(pair: Pair, scale: Scale) -> PartResult:
    """Writes and reads of all ways, the bytes of a read of one column, and a start with many typed topics."""
    with tempfile.TemporaryDirectory(prefix="bench-parquet-") as folder, Spark() as spark:
        measured = _Measured(spark, pair, scale, Path(folder))
        measured.warm_up()
        for number in range(scale.typed_rounds):
            measured.one_round(number)
        measured.check_where()
        for number in range(MORE_ROUNDS):
            measured.our_reads(number)
    with_kafka = KAFKA in measured.ways
    rows = _rows(measured, with_kafka)
    topic = "typed-0"
    sent = {what: [sent_mb(pair.ours, topic, ONE if what == "one" else "")] for what in ("one", "all")}
    what = "one column of 20 against all"
    rows += [
        ratio_row(f"bytes from the brokers, {what}", sent, "MB", at_most(0.1)),
        measured.one_against_all(f"read by Spark, {what}", "seconds", ""),
        measured.one_against_all("the same, CPU of Spark", "spark_cpu", ""),
        measured.one_against_all("the same, CPU of the brokers", "brokers_cpu", at_most(1)),
        gain_row(
            f"`where` that leaves the rows of 1 in {SHARE} batches, against without",
            measured.taken["where", TYPED].seconds,
            measured.taken["all", TYPED].seconds,
            at_least(10),
        ),
    ]
    notes = [
        f"PySpark {spark.version}, local[2], {PARTITIONS} partitions, {scale.typed_rows:,} rows; "
        "Kafka tuned: batch.size 1 MB, linger 20 ms, lz4; with Kafka's defaults one round.",
        *_found(measured.taken),
    ]
    return PartResult(rows, notes)


def _rows(measured: _Measured, with_kafka: bool) -> list[Row]:
    def aim(bound: float) -> str:
        return at_least(bound) if with_kafka else ""

    return [
        measured.against_kafka("typed write, Kafka's defaults + to_json", "write", DEFAULTS, aim(5)),
        measured.against_kafka("typed write, Kafka tuned + to_json", "write", KAFKA, aim(2)),
        measured.against_ours("typed write, our untyped topic + to_json", "write", UNTYPED, at_least(2)),
        measured.against_kafka("typed read of all columns, Kafka + from_json", "all", KAFKA, aim(4)),
        measured.against_ours("the same, our untyped topic + from_json", "all", UNTYPED, at_least(2.5)),
        measured.against_kafka("`columns` of one of 20, Kafka + from_json", "one", KAFKA, aim(20)),
        measured.spark_cpu_row(),
        measured.against_ours("`columns` of one of 20, Parquet on the same disk", "one", FILES),
        measured.against_ours("read of all columns, Parquet on the same disk", "all", FILES),
        measured.against_ours("write, Parquet on the same disk", "write", FILES, "there in one copy"),
    ]


def _found(taken: Mapping[tuple[str, str], Taken]) -> Sequence[str]:
    return [
        f"{name}, {work}: {median(one.seconds):.2f} s, CPU of Spark {median(one.spark_cpu):.2f} s."
        for (work, name), one in taken.items()
    ]
