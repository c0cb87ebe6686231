"""``--topic T[:P,...]``: topics or some of their partitions, and the partitions that they name."""

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from sparklog.cli.topic_names import topic_name, topic_wanted
from sparklog.cli.values import partition_number
from sparklog.client.admin import UNKNOWN_TOPIC_WAIT_MS
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition


class NamedPartitions(NamedTuple):
    """A topic, and the partitions that were named; None means all."""

    topic: str
    partitions: tuple[int, ...] | None


def partitions_option(text: str) -> NamedPartitions:
    """``T`` or ``T:P,P``, as a type for argparse."""
    topic, colon, numbers = text.partition(":")
    if not colon:
        return NamedPartitions(topic_name(topic), None)
    partitions = dict.fromkeys(partition_number(number.strip()) for number in numbers.split(","))
    return NamedPartitions(topic_name(topic), tuple(partitions))


def named_partitions(
    cluster: ClusterClient, arguments: argparse.Namespace, named: Sequence[NamedPartitions]
) -> list[TopicPartition]:
    """The partitions that ``--topic`` names; SparklogError if a topic or a partition does not exist."""
    found: set[TopicPartition] = set()
    for name, partitions in named:
        with topic_wanted(cluster, arguments, name):
            topic = cluster.topic(name, timeout_ms=UNKNOWN_TOPIC_WAIT_MS)
        unknown = sorted(set(partitions or ()) - topic.partitions.keys())
        if unknown:
            raise SparklogError(
                f"--topic {name}:{unknown[0]}: the topic has partitions 0 to {len(topic.partitions) - 1}"
            )
        found |= {
            TopicPartition(name, number)
            for number in (topic.partitions if partitions is None else partitions)
        }
    return sorted(found)
