"""``sparklog transactions describe-producers``: what a partition's leader remembers of its producers."""

import argparse
import json
from typing import Any

from sparklog.cli.command import DONE
from sparklog.cli.connect import wants_json
from sparklog.cli.coordinators.transactions.ages import moment_of
from sparklog.cli.progress import patience
from sparklog.cli.table import render_table
from sparklog.cli.topic_names import check_partition, find_topic
from sparklog.client.cluster import ClusterClient
from sparklog.client.transactions.transaction_admin import PartitionProducer, TransactionAdmin
from sparklog.model.ids import TopicPartition


def find_partition(cluster: ClusterClient, arguments: argparse.Namespace) -> TopicPartition:
    """The partition of ``--topic`` and ``--partition``; SparklogError if it does not exist."""
    check_partition(find_topic(cluster, arguments, arguments.topic), arguments.partition)
    return TopicPartition(arguments.topic, arguments.partition)


def describe_producers(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    topic_partition = find_partition(cluster, arguments)
    with patience(f"asking the leader of {topic_partition}"):
        found = TransactionAdmin(cluster).producers([topic_partition])[topic_partition]
    if wants_json(arguments):
        print(
            json.dumps(
                {
                    "topic": topic_partition.topic,
                    "partition": topic_partition.partition,
                    "active_producers": [producer_as_json(one) for one in found],
                }
            )
        )
        return DONE
    headers = ["PRODUCER ID", "EPOCH", "COORDINATOR EPOCH", "LAST SEQUENCE", "LAST BATCH", "OPEN SINCE"]
    rows = [
        [
            one.producer_id,
            one.producer_epoch,
            _or_none(one.coordinator_epoch),
            _or_none(one.last_sequence),
            moment_of(one.last_timestamp_ms),
            _or_none(one.open_since),
        ]
        for one in found
    ]
    print(
        render_table(headers, rows, spare=("COORDINATOR EPOCH", "LAST SEQUENCE"))
        if rows
        else f"no producers in {topic_partition}"
    )
    return DONE


def producer_as_json(one: PartitionProducer) -> dict[str, Any]:
    """Field names as in DescribeProducers; unknown numbers are -1."""
    return {
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "last_sequence": one.last_sequence,
        "last_timestamp": one.last_timestamp_ms,
        "coordinator_epoch": one.coordinator_epoch,
        "current_txn_start_offset": one.open_since,
    }


def _or_none(number: int) -> int | None:
    return None if number < 0 else number
