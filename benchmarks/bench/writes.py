"""What exactly once costs: writes of Spark beside the same at least once, a large commit, the cut of a read.

Our half only, in turns: Kafka's connector has neither. Figures are ratios of medians of one run.
"""

import time
import uuid
from collections.abc import Iterable
from statistics import median
from typing import Final

from bench.clusters import Pair
from bench.kafka_clients import create_topic, wait_in_sync
from bench.report import PartResult, Row
from bench.scale import Scale, say
from bench.spark import Spark, form_of
from bench.turns import ratio_row, ways_in_turn
from sparklog.client.cluster import ClusterClient
from sparklog.client.isolation import IsolationLevel
from sparklog.client.offsets import latest
from sparklog.client.producer import BatchProducer, Transaction
from sparklog.client.transactions.cutting import agreed_cut
from sparklog.client.transactions.writes.write_driver import commit_write
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.client.transactions.writes.write_member import WriteMember
from sparklog.model.ids import TopicPartition
from sparklog.model.write_ids import MEMBER_EPOCH
from sparklog.records.kafka.encode import Record, build_records_batch

PARTITIONS: Final = 4
DELIVERIES: Final = ("exactly-once", "at-least-once")
READ_LEVELS: Final = ("read_committed", "read_uncommitted")
WIDE: Final = 50
"""Partitions of the large commit, and of the cut."""
ROWS_OF_A_MEMBER: Final = 10
"""In each partition."""
TIMEOUT_MS: Final = 300_000


def writes(pair: Pair, scale: Scale) -> PartResult:
    """Exactly once against at least once, a commit of many members, and the cut of a batch read."""
    bootstrap = pair.ours.bootstrap
    made = _with_spark(pair, scale)
    create_topic(bootstrap, "wide", WIDE)
    wait_in_sync(bootstrap, "wide")
    with ClusterClient(bootstrap, client_id="bench-writes") as cluster:
        made += _commits(cluster, scale)
        made += _cuts(cluster, scale)
    return PartResult(made, [f"PySpark local[2], {PARTITIONS} partitions; {scale.rounds} rounds in turn."])


def _with_spark(pair: Pair, scale: Scale) -> list[Row]:
    cluster = pair.ours
    asked = {"form": form_of(cluster), "servers": cluster.bootstrap}
    with Spark() as spark:

        def write(name: str, rows: int, delivery: str) -> float:
            topic = f"{name}-{delivery}"
            create_topic(cluster.bootstrap, topic, PARTITIONS)
            options = {"delivery": delivery}
            answer = spark.ask("write", **asked, topic=topic, rows=rows, options=options)
            return float(answer["seconds"])

        def stream(name: str, delivery: str) -> float:
            topic = f"{name}-{delivery}"
            create_topic(cluster.bootstrap, topic, PARTITIONS)
            options = {"delivery": delivery}
            count = scale.micro_batches
            answer = spark.ask("micro_batches", **asked, topic=topic, count=count, options=options)
            return float(median(answer["trigger_ms"]))

        def count(level: str) -> float:
            options = {"kafka.isolation.level": level}
            answer = spark.ask("count", **asked, topic="small-0-exactly-once", options=options)
            return float(answer["seconds"])

        for delivery in DELIVERIES:
            write("warm", scale.rows, delivery)
        large = ways_in_turn(scale.rounds, DELIVERIES, lambda n, how: write(f"large-{n}", scale.rows, how))
        small = ways_in_turn(scale.rounds, DELIVERIES, lambda n, how: write(f"small-{n}", 100, how))
        single = ways_in_turn(scale.rounds, DELIVERIES, lambda n, how: stream(f"single-{n}", how))
        counts = ways_in_turn(5 * scale.rounds, READ_LEVELS, lambda _, level: count(level))
    return [
        ratio_row(f"exactly once against at least once, a write of {scale.rows:,} rows", large, "s"),
        ratio_row("the same, a write of 100 rows", small, "s"),
        ratio_row("the same, a micro-batch of one row", single, "ms", f"{scale.micro_batches} of them"),
        ratio_row("a small topic counted with a cut against without", counts, "s", "`read_uncommitted`"),
    ]


def _commits(cluster: ClusterClient, scale: Scale) -> list[Row]:
    """Members write one after the other, so that a commit has nothing but itself to wait for."""
    writing: list[float] = []
    committing: list[float] = []
    for number in range(scale.rounds):
        write = WriteIdentity(f"bench-{uuid.uuid4().hex}", number, "run", is_plain=True)
        began = time.perf_counter()
        winners = [_member(cluster, write, str(one)) for one in range(scale.write_members)]
        writing.append(time.perf_counter() - began)
        began = time.perf_counter()
        commit_write(cluster, write, winners, timeout_ms=TIMEOUT_MS)
        committing.append(time.perf_counter() - began)
        say(f"writes: {scale.write_members} members {writing[-1]:.2f} s, commit {committing[-1]:.2f} s")
    what = f"of {scale.write_members} tasks in {WIDE} partitions"
    wrote = f"they wrote {ROWS_OF_A_MEMBER} rows in each partition in {median(writing):.3g} s, one by one"
    return [Row(f"commit of a write {what}", "s", median(committing), more_is_better=False, note=wrote)]


def _member(cluster: ClusterClient, write: WriteIdentity, attempt: str) -> int:
    """A member that writes to all partitions and is done; its producer id."""
    member = WriteMember(cluster, write, attempt, timeout_ms=TIMEOUT_MS)
    try:
        member.open(_places())
        transaction = Transaction(write.app_id, member.producer_id, MEMBER_EPOCH)
        records = [Record(value=b"x" * 100)] * ROWS_OF_A_MEMBER
        with BatchProducer(cluster, timeout_ms=TIMEOUT_MS, transaction=transaction) as producer:
            for place in _places():
                now_ms = time.time_ns() // 1_000_000
                producer.send(place, build_records_batch(records, now_ms=now_ms))
        member.finish()
    finally:
        member.close()
    return member.producer_id


def _cuts(cluster: ClusterClient, scale: Scale) -> list[Row]:
    """What the first task of a read pays, what the others pay, and what listing the ends takes alone."""

    def ends() -> None:
        latest(cluster, _places(), IsolationLevel.READ_UNCOMMITTED)

    def made() -> None:
        agreed_cut(cluster, f"bench-{uuid.uuid4().hex}", _places)

    name = f"bench-{uuid.uuid4().hex}"

    def told() -> None:
        agreed_cut(cluster, name, _places)

    ways = {"ends": ends, "made": made, "told": told}
    for way in ways.values():
        way()
    spans: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(20 * scale.rounds):
        for way, ask in ways.items():
            began = time.perf_counter()
            ask()
            spans[way].append((time.perf_counter() - began) * 1_000)
    alone = {"ends": spans["ends"]}
    over = f"{WIDE} partitions"
    return [
        ratio_row(f"the cut of a read against listing the ends, {over}", {"": spans["made"], **alone}, "ms"),
        ratio_row(
            "the same, of a task that finds the cut",
            {"": spans["told"], **alone},
            "ms",
            "all but the first of a read",
        ),
    ]


def _places() -> Iterable[TopicPartition]:
    return [TopicPartition("wide", number) for number in range(WIDE)]
