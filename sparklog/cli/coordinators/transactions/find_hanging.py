"""``sparklog transactions find-hanging``: transactions that hold back read-committed readers and that no
coordinator will end."""

import argparse
import json
from typing import Any, Final

from sparklog.cli.command import DONE
from sparklog.cli.connect import cluster_words, wants_json
from sparklog.cli.coordinators.transactions.ages import age_of
from sparklog.cli.coordinators.transactions.producers import find_partition, producer_as_json
from sparklog.cli.progress import patience, say
from sparklog.cli.table import render_table
from sparklog.cli.topic_names import find_topic
from sparklog.client.cluster import ClusterClient
from sparklog.client.transactions.hanging import OpenTransaction, hanging_transactions
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition

_MS_PER_MINUTE: Final = 60_000


def find_hanging(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    topic_partitions = _partitions(cluster, arguments)
    now_ms = cluster.clock.wall_ms()
    with patience(f"asking the leaders of {len(topic_partitions)} partitions"):
        found = hanging_transactions(
            cluster, topic_partitions, arguments.max_transaction_timeout * _MS_PER_MINUTE, now_ms
        )
    if wants_json(arguments):
        print(json.dumps({"transactions": [_as_json(one) for one in found]}))
        return DONE
    print(_table(found, now_ms) if found else "no hanging transactions")
    if found:
        (topic, partition), start = found[0].topic_partition, found[0].producer.open_since
        say(
            f"to end the first: sparklog transactions abort --topic {topic} --partition {partition} "
            f"--start-offset {start} {cluster_words(arguments)}"
        )
    return DONE


def _partitions(cluster: ClusterClient, arguments: argparse.Namespace) -> list[TopicPartition]:
    """The partitions that the options name; by default all."""
    if arguments.partition is not None:
        return [find_partition(cluster, arguments)]
    if arguments.topic is not None:
        topics = [find_topic(cluster, arguments, arguments.topic)]
    else:
        topics = list(cluster.metadata().topics.values())
    broker_id: int | None = arguments.broker_id
    brokers = cluster.metadata([], max_age_ms=0).brokers
    if broker_id is not None and broker_id not in brokers:
        raise SparklogError(
            f"--broker-id {broker_id}: there is no such live broker; there are "
            f"{', '.join(map(str, sorted(brokers)))}"
        )
    return [
        TopicPartition(topic.name, number)
        for topic in topics
        for number, partition in sorted(topic.partitions.items())
        if broker_id is None or broker_id in partition.replicas
    ]


def _table(found: list[OpenTransaction], now_ms: int) -> str:
    headers = [
        "TOPIC",
        "PARTITION",
        "START OFFSET",
        "PRODUCER ID",
        "EPOCH",
        "COORDINATOR EPOCH",
        "AGE",
    ]
    rows = [
        [
            *one.topic_partition,
            one.producer.open_since,
            one.producer.producer_id,
            one.producer.producer_epoch,
            None if one.producer.coordinator_epoch < 0 else one.producer.coordinator_epoch,
            age_of(one.producer.last_timestamp_ms, now_ms),
        ]
        for one in found
    ]
    return render_table(headers, rows, spare=("COORDINATOR EPOCH",))


def _as_json(one: OpenTransaction) -> dict[str, Any]:
    topic, partition = one.topic_partition
    return {"topic": topic, "partition": partition, **producer_as_json(one.producer)}
