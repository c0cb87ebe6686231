"""What a reader of one of twenty columns pays, against one of all: bytes of the brokers, time and CPU.

Our half only, in turns. Figures are ratios of medians of one run.
"""

from typing import Final

from bench.clusters import Pair
from bench.report import PartResult
from bench.scale import Scale
from bench.spark import Spark, form_of
from bench.turns import ratio_row, spending, ways_in_turn
from sparklog.client.cluster import ClusterClient
from sparklog.client.fetched import FetchTerms, answers_of, fetch_request, fetched_of
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import KnownLeader
from sparklog.client.offsets import latest
from sparklog.client.reader import FETCH_BYTES, MAX_WAIT_MS
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.ids import TopicPartition
from sparklog.records.payload_kinds import ALL_PAYLOADS

PARTITIONS: Final = 4
TOPIC: Final = "typed"
ONE: Final = "x0"
OPTIONS: Final = {"one": {"columns": ONE}, "all": {}}
TIMEOUT_MS: Final = 60_000


def typed(pair: Pair, scale: Scale) -> PartResult:
    """A read of one column by option ``columns``, against one of all 20."""
    cluster = pair.ours
    brokers: dict[str, list[float]] = {way: [] for way in OPTIONS}
    spark_cpu: dict[str, list[float]] = {way: [] for way in OPTIONS}
    with Spark() as spark:
        spark.ask(
            "write_typed", servers=cluster.bootstrap, topic=TOPIC, rows=scale.rows, partitions=PARTITIONS
        )

        def read(way: str) -> float:
            before = sum(spark.cpu_s().values())
            order = {"form": form_of(cluster), "servers": cluster.bootstrap, "topic": TOPIC}
            with spending(cluster) as spent:
                answer = spark.ask("read", **order, options=OPTIONS[way])
            brokers[way].append(spent.brokers_cpu_s)
            spark_cpu[way].append(sum(spark.cpu_s().values()) - before)
            return float(answer["seconds"])

        for way in OPTIONS:
            read(way)
        brokers, spark_cpu = ({way: [] for way in OPTIONS} for _ in range(2))
        seconds = ways_in_turn(2 * scale.rounds + 1, ("one", "all"), lambda _, way: read(way))
    with ClusterClient(cluster.bootstrap, client_id="bench-typed") as client:
        schema = describe_schemas(client, [TOPIC])[TOPIC]
        ids = tuple(column.id for column in schema.at(1) if column.name == ONE)
        sent = {"one": [_sent_mb(client, ids)], "all": [_sent_mb(client, None)]}
    what = "one column of 20 against all"
    rows = [
        ratio_row(f"bytes from the brokers, {what}", sent, "MB"),
        ratio_row(f"read by Spark, {what}", seconds, "s"),
        ratio_row("the same, CPU of Spark", spark_cpu, "s"),
        ratio_row("the same, CPU of the brokers", brokers, "s"),
    ]
    return PartResult(
        rows, [f"PySpark {spark.version}, local[2], {PARTITIONS} partitions, {scale.rows:,} rows."]
    )


def _sent_mb(client: ClusterClient, columns: tuple[int, ...] | None) -> float:
    """What all partitions are answered with, for fetches that name these columns."""
    places = client.topic(TOPIC).topic_partitions()
    ends = latest(client, places, IsolationLevel.READ_COMMITTED)
    return sum(_sent_bytes(client, place, ends[place], columns) for place in places) / 1e6


def _sent_bytes(
    client: ClusterClient, place: TopicPartition, end: int, columns: tuple[int, ...] | None
) -> int:
    leader = client.latest_metadata.leader(place)
    if not isinstance(leader, KnownLeader):
        raise RuntimeError(f"{place} has no leader: {leader}")
    terms = FetchTerms(MAX_WAIT_MS, FETCH_BYTES, FETCH_BYTES, 1, payload_kinds=ALL_PAYLOADS, columns=columns)
    connection = client.borrow(client.latest_metadata.endpoint(leader.broker_id), client.deadline(TIMEOUT_MS))
    position = size = 0
    while position < end:
        request = fetch_request({place: leader}, {place: position}, terms)
        answer = answers_of(connection.call(request, timeout_ms=TIMEOUT_MS), {place: leader})[place]
        found = fetched_of(place, position, answer)
        position, size = found.next_offset, size + len(found.records)
    client.discard(connection)
    return size
