"""Topics that a write goes to: whether they are there, and the largest batch that they take."""

import time
from typing import Final

from sparklog.client.admin import Admin
from sparklog.client.calls.retry import Deadline
from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import TopicMetadata
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.kafka_numbers import TOPIC_RESOURCE
from sparklog_datasource.reads.discovery import UNKNOWN_TOPIC
from sparklog_datasource.writing.write_options import WriteOptions

ASK_AGAIN_S: Final = 0.05
LIMIT: Final = "max.message.bytes"
LIMIT_BY_DEFAULT: Final = 1_048_588
"""Kafka's, as brokers have it by default."""
LEADER_TIMEOUT_MS: Final = 2_000
"""A leader that stands still holds no task up for longer: others may be all that the task writes to."""


def message_bytes_max(cluster: ClusterClient, topic: TopicMetadata, options: WriteOptions) -> int:
    """The largest batch in bytes that all leaders of ``topic`` take: each has a default of its own.

    A leader that cannot be reached counts for nothing; a write waits for it later, if it must. A user who
    may write and not see settings writes batches as large as leaders take by default.
    """
    deadline = cluster.deadline(options.topic_wait_ms)
    leaders = {partition.leader for partition in topic.partitions.values() if partition.leader >= 0}
    limits = [
        limit
        for leader in sorted(leaders)
        if (limit := _limit_of(cluster, topic.name, deadline, leader)) is not None
    ]
    if limits:
        return min(limits)
    limit = _limit_of(cluster, topic.name, deadline, None)
    assert limit is not None, "a client raises if no broker answers"
    return limit


def _limit_of(cluster: ClusterClient, topic: str, deadline: Deadline, broker: int | None) -> int | None:
    """As ``broker`` has it, or any; None if that broker is not reached.

    A broker may learn of a new topic a moment after others.
    """
    while True:
        try:
            described = Admin(cluster).describe_configs(
                TOPIC_RESOURCE,
                [topic],
                settings=[LIMIT],
                by_broker=broker,
                timeout_ms=None if broker is None else LEADER_TIMEOUT_MS,
            )
            return int(described[topic][LIMIT][0])
        except OSError:
            if broker is None:
                raise
            return None
        except KafkaError as error:
            if error.code is ErrorCode.topic_authorization_failed:
                return LIMIT_BY_DEFAULT
            if error.code is ErrorCode.broker_not_available and broker is not None:
                return None
            if error.code not in UNKNOWN_TOPIC or deadline.is_over:
                raise
        time.sleep(ASK_AGAIN_S)


def existing_topic(cluster: ClusterClient, name: str, options: WriteOptions) -> TopicMetadata:
    """The topic as it is now; the request may create it (``auto.create.topics.enable``).

    Raises KafkaError with the remedy if there is no such topic. An earlier task's metadata is not used,
    because the topic may have been deleted since, or have more partitions.
    """
    try:
        cluster.metadata([name], max_age_ms=0)
        return cluster.topic(name, timeout_ms=options.topic_wait_ms)
    except KafkaError as error:
        remedy = "; create it, or allow the brokers to (auto.create.topics.enable)"
        if error.code not in UNKNOWN_TOPIC:
            remedy = ""
        raise KafkaError(error.code, f"cannot write to topic {name!r}: {error.message}{remedy}") from error
