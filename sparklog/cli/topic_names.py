"""Topic names on the command line: their validation, and the error text for an unknown topic."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from sparklog.cli.command import did_you_mean
from sparklog.cli.connect import cluster_words
from sparklog.cli.progress import patience
from sparklog.client.admin import UNKNOWN_TOPIC_WAIT_MS
from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import TopicMetadata
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.ids import topic_name_problem


def topic_name(text: str) -> str:
    """A legal name, as a type for argparse."""
    problem = topic_name_problem(text)
    if problem is not None:
        raise argparse.ArgumentTypeError(problem)
    return text


def find_topic(cluster: ClusterClient, arguments: argparse.Namespace, name: str) -> TopicMetadata:
    """The topic; SparklogError with a similar name and the remedy if it does not exist."""
    with patience(f"looking for topic {name!r}"), topic_wanted(cluster, arguments, name, or_create=True):
        return cluster.topic(name, timeout_ms=UNKNOWN_TOPIC_WAIT_MS)


def check_partition(topic: TopicMetadata, partition: int) -> None:
    """SparklogError if the topic has no such partition."""
    if partition not in topic.partitions:
        last = len(topic.partitions) - 1
        there_are = "only partition 0" if last == 0 else f"partitions 0 to {last}"
        raise SparklogError(f"--partition {partition}: topic {topic.name!r} has {there_are}")


@contextmanager
def topic_wanted(
    cluster: ClusterClient, arguments: argparse.Namespace, name: str, *, or_create: bool = False
) -> Iterator[None]:
    """A context that turns UNKNOWN_TOPIC_OR_PARTITION for the topic ``name`` into a helpful SparklogError."""
    try:
        yield
    except KafkaError as error:
        if error.code is not ErrorCode.unknown_topic_or_partition:
            raise
        known = sorted(cluster.metadata().topics)
        raise SparklogError(_no_such_topic(name, known, cluster_words(arguments), or_create)) from None


def _no_such_topic(name: str, known: list[str], cluster: str, or_create: bool) -> str:
    create = f"create it with: sparklog topics create {name} {cluster}"
    if not known:
        return f"there is no topic {name!r}, nor any other; {create}"
    hint = did_you_mean(name, known) or f"; `sparklog topics list {cluster}` shows those there are"
    if not or_create:
        return f"there is no topic {name!r}{hint}"
    return f"there is no topic {name!r}{hint}{' Or' if hint.endswith('?') else ', or'} {create}"
