"""Tasks of about the same number of bytes: option ``bytesPerTask`` of batch reads.

A broker knows the size of a partition's log, not that of a range. So each offset counts with the log's
average bytes, as stored. Ranges above ``bytesPerTask`` are split. Smaller ones are put together, in the
order of topics and partitions, as long as the task stays within it.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from sparklog.client.admin import Admin
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.model.ids import TopicPartition
from sparklog_datasource.reads.ranges import OffsetRange, split_evenly

Item = TypeVar("Item")


def bytes_per_offset(
    cluster: ClusterClient, topic_partitions: Collection[TopicPartition]
) -> dict[TopicPartition, float]:
    """The average bytes of an offset of each partition, by its leader's log; 0 for an empty log.

    KafkaError or OSError if a leader does not answer.
    """
    if not topic_partitions:
        return {}
    admin = Admin(cluster)
    starts, ends = admin.earliest(topic_partitions), admin.latest(topic_partitions)
    topics = {topic_partition.topic for topic_partition in topic_partitions}
    seen = cluster.metadata(sorted(topics), max_age_ms=0)
    leaders = {
        topic_partition: seen.topics[topic_partition.topic].partitions[topic_partition.partition].leader
        for topic_partition in topic_partitions
    }
    sizes: dict[TopicPartition, int] = {}
    for broker in sorted(set(leaders.values())):
        for directory in ClusterChanges(cluster).describe_log_dirs(broker).values():
            for topic_partition, replica in directory.replicas.items():
                if leaders.get(topic_partition) == broker:
                    sizes[topic_partition] = replica.size_bytes
    return {
        topic_partition: sizes.get(topic_partition, 0) / (ends[topic_partition] - starts[topic_partition])
        if ends[topic_partition] > starts[topic_partition]
        else 0.0
        for topic_partition in topic_partitions
    }


def split_by_bytes(
    ranges: Sequence[OffsetRange], density: Mapping[TopicPartition, float], bytes_max: int
) -> list[OffsetRange]:
    """Pieces of about ``bytes_max`` at most; ``density`` has the bytes of an offset."""
    pieces: list[OffsetRange] = []
    for whole in ranges:
        if whole.size > 0:
            count = math.ceil(whole.size * density[whole.topic_partition] / bytes_max)
            pieces.extend(split_evenly(whole, min(max(count, 1), whole.size)))
    return pieces


def gathered(items: Sequence[Item], sizes: Sequence[float], bytes_max: int) -> list[list[Item]]:
    """Lists of neighbours with ``bytes_max`` at most; each list has at least one item."""
    groups: list[list[Item]] = []
    filled = 0.0
    for item, size in zip(items, sizes, strict=True):
        if groups and filled + size <= bytes_max:
            groups[-1].append(item)
            filled += size
        else:
            groups.append([item])
            filled = size
    return groups
