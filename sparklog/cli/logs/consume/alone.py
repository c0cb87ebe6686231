"""Reading given partitions from offsets that the command line chooses; no position is kept."""

import argparse

from sparklog.cli.logs.consume.printing import RecordPrinter
from sparklog.cli.progress import patience, say
from sparklog.cli.topic_names import check_partition
from sparklog.client import offsets
from sparklog.client.cluster import ClusterClient
from sparklog.client.consumer import Consumer
from sparklog.client.errors import OffsetOutOfRange
from sparklog.client.isolation import IsolationLevel
from sparklog.client.metadata.cluster_metadata import TopicMetadata
from sparklog.model.ids import TopicPartition


def read_alone(cluster: ClusterClient, arguments: argparse.Namespace, topics: list[TopicMetadata]) -> None:
    """Print the topics' records until Ctrl-C, or another of the command's ends."""
    names = ", ".join(repr(topic.name) for topic in topics)
    with patience(f"looking for the offsets of topic {names}"):
        positions: dict[TopicPartition, int] = {}
        for topic in topics:
            positions |= starting_positions(cluster, topic, arguments)
    try:
        with Consumer(
            cluster,
            positions,
            isolation_level=isolation_level(arguments),
            on_out_of_range=_go_on_with_what_is_left,
        ) as consumer:
            printer = RecordPrinter(arguments)
            while not printer.is_done:
                wait_ms = printer.wait_ms
                polled = consumer.poll(wait_ms)
                for topic_partition, rows in polled:
                    printer.print(topic_partition, rows)
                if not polled:
                    printer.note_silence(wait_ms)
    except KeyboardInterrupt:
        pass  # the usual end of a consumer


def starting_positions(
    cluster: ClusterClient, topic: TopicMetadata, arguments: argparse.Namespace
) -> dict[TopicPartition, int]:
    """The first offset to read of each partition."""
    topic_partitions = topic.topic_partitions()
    if arguments.partition is not None:
        check_partition(topic, arguments.partition)
        topic_partitions = [TopicPartition(topic.name, arguments.partition)]
    if arguments.offset is not None:
        return dict.fromkeys(topic_partitions, arguments.offset)
    if arguments.from_beginning:
        return offsets.earliest(cluster, topic_partitions)
    return offsets.latest(cluster, topic_partitions, isolation_level(arguments))


def isolation_level(arguments: argparse.Namespace) -> IsolationLevel:
    """What ``--isolation-level`` names."""
    return IsolationLevel[arguments.isolation_level.upper()]


def _go_on_with_what_is_left(gone: OffsetOutOfRange) -> int:
    """Retention deleted records before this reader got them: warn, and continue at the log start."""
    if gone.offset > gone.log_end_offset:
        raise gone
    say(f"warning: {gone.message}; going on with offset {gone.log_start_offset}")
    return gone.log_start_offset
