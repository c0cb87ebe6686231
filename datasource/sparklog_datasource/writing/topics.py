"""Topics that a write goes to: whether they are there, and the largest batch that they take."""

import time
from typing import Final

from sparklog.client.admin import Admin
from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import TopicMetadata
from sparklog.model.errors import KafkaError
from sparklog.model.kafka_numbers import TOPIC_RESOURCE
from sparklog_datasource.reads.discovery import UNKNOWN_TOPIC
from sparklog_datasource.writing.write_options import WriteOptions

ASK_AGAIN_S: Final = 0.05


def message_bytes_max(cluster: ClusterClient, name: str, options: WriteOptions) -> int:
    """The largest batch that a topic takes; a broker may learn of a new topic a moment after others."""
    deadline = cluster.deadline(options.topic_wait_ms)
    while True:
        try:
            settings = Admin(cluster).describe_configs(TOPIC_RESOURCE, [name])[name]
            return int(settings["max.message.bytes"][0])
        except KafkaError as error:
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
