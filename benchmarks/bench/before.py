"""This checkout's brokers against another one's, in turns: what changes of the code cost where nothing is on.

The other checkout is installed in an environment of its own; `--before` names the `sparklog` command there.
Kafka's clients are the same; Spark has the data source of each checkout. CPU is the measure: its ratio is of
the lower quartiles of all rounds.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench import groups, transactions
from bench.clients import one_by_one
from bench.clusters import Pair, Sparklog
from bench.kafka_clients import create_topic, wait_in_sync
from bench.report import PartResult, Row, figure
from bench.scale import Scale, say
from bench.spark import SOURCES, Spark, sources_of
from bench.turns import pairs_row, quartile_of, spending

NOW: Final = "now"
BEFORE: Final = "before"
SPELL_S: Final = 4.0
IDLE_S: Final = 3.0

IDLE: Final = "seconds without a request"
WRITE: Final = "Spark batch write"
READ: Final = "Spark batch read, all columns"
SPARK_PARTITIONS: Final = 4
FIRST_ROWS: Final = 10_000

Work = Callable[[Sparklog], int]
"""How often it was done in a spell."""


def before(pair: Pair, scale: Scale) -> PartResult:
    """Ratios of rates, this checkout's to the other one's."""
    if pair.before is None:
        return PartResult([], ["Left out: `--before` names the sparklog command of no other checkout."])
    pair.stop()  # what else runs here would be measured too
    found = Found()
    clusters = {NOW: Sparklog(), BEFORE: Sparklog(command=pair.before)}
    sources = {NOW: SOURCES, BEFORE: sources_of(pair.before)}
    try:
        for cluster in clusters.values():
            _get_ready(cluster, scale)
        with Spark(sources[NOW]) as now, Spark(sources[BEFORE]) as earlier:
            sparks = {NOW: now, BEFORE: earlier}
            for name, spark in sparks.items():
                _rows(spark, clusters[name], "warm", scale.rows)
            for number in range(scale.pairs):
                for name, cluster in list(clusters.items())[:: -1 if number % 2 else 1]:
                    found.one_turn(name, cluster, scale, number)
                    found.note_rows(name, _rows(sparks[name], cluster, f"rows-{number}", scale.rows))
    finally:
        for cluster in clusters.values():
            cluster.stop()
    return PartResult(found.rows(), [f"{len(found.works())} kinds of work, {scale.pairs} rounds in turns."])


def _get_ready(cluster: Sparklog, scale: Scale) -> None:
    cluster.start()
    cluster.wait_ready()
    sizes = {"alone": 1, "written": transactions.PARTITIONS, groups.TOPIC: scale.group_members}
    for topic, partitions in sizes.items():
        create_topic(cluster.bootstrap, topic, partitions)
        wait_in_sync(cluster.bootstrap, topic)
    transactions.warm_up(cluster)
    one_by_one(cluster, SPELL_S)


Rows = dict[str, tuple[float, float]]
"""Of each work of Spark: rows a second, and the brokers' CPU microseconds for a row."""


def _rows(spark: Spark, cluster: Sparklog, topic: str, rows: int) -> Rows:
    """Spark writes rows to a new topic and reads them, by default options. A few rows go first: Spark ends
    Python workers that rested for a minute, as all have during the other work.
    """
    for name in (topic, f"{topic}-first"):
        create_topic(cluster.bootstrap, name, SPARK_PARTITIONS)
        wait_in_sync(cluster.bootstrap, name)
    spark.ask("hold", rows=rows)
    order = {"form": "sparklog", "servers": cluster.bootstrap, "topic": f"{topic}-first"}
    spark.ask("write", **order, rows=FIRST_ROWS, options={})
    spark.ask("read", **order)
    order["topic"] = topic
    measured: Rows = {}
    for work, what, more in ((WRITE, "write", {"rows": rows, "options": {}}), (READ, "read", {})):
        with spending(cluster) as spent:
            seconds = float(spark.ask(what, **order, **more)["seconds"])
        measured[work] = (rows / seconds, spent.brokers_cpu_s * 1e6 / rows)
    return measured


class Found:
    """Rates, and the CPU of all brokers for one, by work and checkout."""

    def __init__(self) -> None:
        self._rates: dict[str, dict[str, list[float]]] = {}
        self._cpu_us: dict[tuple[str, str], list[float]] = {}

    def works(self) -> list[str]:
        return list(self._rates)

    def one_turn(self, name: str, cluster: Sparklog, scale: Scale, number: int) -> None:
        self._spell("lone small produces", name, cluster, lambda of: one_by_one(of, SPELL_S))
        for work, records in ((transactions.ONE, 1), (transactions.HUNDRED, transactions.RECORDS)):
            producer = transactions.transactional(cluster, f"of-{records}")
            self._spell(work, name, cluster, lambda _, of=producer, count=records: _commits(of, count))
        count = scale.group_members
        with groups.members(count, cluster, f"before-{number}", count, pause_s=0.0) as joined:
            self._spell(f"commits of {count} consumers", name, cluster, lambda _: _confirmed(joined))
        time.sleep(IDLE_S)
        self._spell(IDLE, name, cluster, _rest)

    def _spell(self, work: str, name: str, cluster: Sparklog, do: Work) -> None:
        with spending(cluster) as spent:
            count = do(cluster)
        cpu_us = spent.brokers_cpu_s * 1e6 / max(1, count)
        self.note(work, name, count / spent.seconds, cpu_us)
        say(f"{name}, {work}: {count / spent.seconds:,.0f} a second, {cpu_us:,.0f} us of CPU each")

    def note_rows(self, name: str, measured: Rows) -> None:
        for work, (rate, cpu_us) in measured.items():
            self.note(work, name, rate, cpu_us)
            say(f"{name}, {work}: {rate:,.0f} rows a second, {cpu_us:.2f} us of CPU each")

    def note(self, work: str, name: str, rate: float, cpu_us: float) -> None:
        self._rates.setdefault(work, {NOW: [], BEFORE: []})[name].append(rate)
        self._cpu_us.setdefault((work, name), []).append(cpu_us)

    def rows(self) -> list[Row]:
        """Of each work a row of its rate, and one of its CPU, where less is better. Rest has no rate."""
        made = []
        for work, rates in self._rates.items():
            if work != IDLE:
                made.append(pairs_row(f"{work}: rate, now against before", rates, "a second"))
            now, earlier = (quartile_of(self._cpu_us[work, name]) or 0.0 for name in (NOW, BEFORE))
            note = f"{figure(now)} us against {figure(earlier)} us"
            title = f"{work}: brokers' CPU, now against before"
            made.append(Row(title, "ratio", now / earlier, more_is_better=False, note=note))
        return made


def _commits(producer: object, records: int) -> int:
    count, began = 0, time.monotonic()
    while time.monotonic() - began < SPELL_S:
        transactions.write(producer, "written", records)
        count += 1
    return count


def _rest(_: Sparklog) -> int:
    time.sleep(IDLE_S)
    return int(IDLE_S)


def _confirmed(joined: list[groups.Member]) -> int:
    """Commits of all members during a spell."""
    earlier = sum(len(member.commits) for member in joined)
    time.sleep(SPELL_S)
    return sum(len(member.commits) for member in joined) - earlier


def command_of(text: str) -> Path:
    """The value of ``--before``; ValueError if it is no program."""
    path = Path(text).absolute()
    if not path.is_file():
        raise ValueError(f"{text}: there is no such program; name the other environment's bin/sparklog")
    return path
