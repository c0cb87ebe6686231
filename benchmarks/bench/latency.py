"""The latency of a micro-batch, and which layer takes it: by part of a trigger, and by program's CPU time.

Four kinds of stream take turns. Beside ours and Kafka's, Kafka's connector reads from our brokers, and an
empty Python source of one task runs while our brokers have the same load. What differs between ours and the
connector on our brokers is the data source's. What differs between ours and the empty one is what sparklog
does in a Python source.
"""

from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from bench.clusters import Cluster, Kafka, Pair, Sparklog
from bench.kafka_clients import SteadyLoad, create_topic
from bench.machine import cpu_of
from bench.report import PartResult, Row, percentile
from bench.scale import Scale, say
from bench.spark import Spark, form_of, has_connector

PER_SECOND: Final = 500
CONNECTOR: Final = "Kafka's connector, our brokers"
EMPTY: Final = "empty Python source, our brokers loaded"


@dataclass(slots=True)
class _Spells:
    """What one kind of stream took, spell by spell."""

    cluster: Cluster
    form: str
    delays_ms: list[tuple[float, float]] = field(default_factory=list)
    """p50 and p99."""

    parts_ms: list[dict[str, float]] = field(default_factory=list)
    cpu_ms: list[dict[str, float]] = field(default_factory=list)
    """Of one micro-batch, by program."""


def latency(pair: Pair, scale: Scale) -> PartResult:
    """A stream's micro-batches while a Kafka client writes 500 records a second; in spells, turns taken.

    The spell with the lowest median counts: a JVM that is still warming up, or a busy neighbour, makes
    records wait for seconds, whoever's they are.
    """
    kinds = {Sparklog.name: _Spells(pair.ours, form_of(pair.ours))}
    if pair.kafka is not None and has_connector():
        kinds[Kafka.name] = _Spells(pair.kafka, form_of(pair.kafka))
        kinds[CONNECTOR] = _Spells(pair.ours, form_of(pair.kafka))
    kinds[EMPTY] = _Spells(pair.ours, "empty")
    with Spark() as spark:
        for number in range(scale.latency_spells):
            for index, name in enumerate(list(kinds)[:: -1 if number % 2 else 1]):
                _one_spell(spark, name, kinds[name], f"latency-{number}-{index}", scale.latency_s)
    ours, kafka = kinds[Sparklog.name], kinds.get(Kafka.name)
    made = [
        Row(
            f"micro-batch latency at {PER_SECOND} records/s, {name}",
            "s",
            min(ours.delays_ms)[index] / 1000,
            min(kafka.delays_ms)[index] / 1000 if kafka else None,
            more_is_better=False,
            note=f"record timestamp to the driver in foreachBatch; best of {scale.latency_spells} spells",
        )
        for index, name in enumerate(("p50", "p99"))
    ]
    return PartResult(made, [_note(name, spells) for name, spells in kinds.items()])


def _one_spell(spark: Spark, name: str, spells: _Spells, topic: str, seconds: float) -> None:
    cluster = spells.cluster
    create_topic(cluster.bootstrap, topic, 1)
    with SteadyLoad(cluster.bootstrap, topic, 1, per_second=PER_SECOND):
        before = _cpu_s(spark, cluster)
        order = {"form": spells.form, "servers": cluster.bootstrap, "topic": topic, "seconds": seconds}
        answer: dict[str, Any] = spark.ask("latency", **order)
        after = _cpu_s(spark, cluster)
    found = answer["latencies_ms"]
    spells.delays_ms.append((percentile(found, 0.5), percentile(found, 0.99)))
    spells.parts_ms.append(answer["trigger_ms"])
    spells.cpu_ms.append({one: (after[one] - before[one]) * 1000 / answer["batches"] for one in after})
    say(f"latency {name}: {_told(spells, -1)}")


def _cpu_s(spark: Spark, cluster: Cluster) -> dict[str, float]:
    return {"brokers": cpu_of(cluster.broker_pids().values()), **spark.cpu_s()}


def _note(name: str, spells: _Spells) -> str:
    """The best spell of a kind, and the median spell's p50."""
    best = spells.delays_ms.index(min(spells.delays_ms))
    middle = median(delays[0] for delays in spells.delays_ms)
    return f"{name}, best spell (median of spells' p50 {middle:,.0f}): {_told(spells, best)}."


def _told(spells: _Spells, index: int) -> str:
    p50, p99 = spells.delays_ms[index]
    parts = ", ".join(f"{part} {ms}" for part, ms in spells.parts_ms[index].items())
    cpu = ", ".join(f"{program} {ms:,.0f}" for program, ms in spells.cpu_ms[index].items())
    return f"p50 {p50:,.0f} ms, p99 {p99:,.0f} ms; median trigger in ms: {parts}; CPU ms a micro-batch: {cpu}"
