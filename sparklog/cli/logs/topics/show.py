"""``sparklog topics list`` and ``describe``: topics, their leaders, in-sync replicas and offsets."""

import argparse
import json
from collections.abc import Sequence
from typing import Any

from sparklog.cli.cluster.status.cluster_status import LOSSES_TIMEOUT_MS
from sparklog.cli.cluster.status.status_text import render_losses
from sparklog.cli.command import DONE, UsageError
from sparklog.cli.connect import wants_json
from sparklog.cli.logs.topics.column_options import columns_as_json, schema_of, show_columns
from sparklog.cli.progress import patience
from sparklog.cli.table import render_table
from sparklog.cli.topic_names import topic_name, topic_wanted
from sparklog.client.admin import Admin, PartitionDescription, TopicDescription
from sparklog.client.cluster import ClusterClient
from sparklog.client.offsets import RemoteShare
from sparklog.client.possible_losses import PossibleLoss, possible_losses
from sparklog.client.topic_schemas import describe_schemas
from sparklog.model.schema.document import SchemaDocument

LIST_SUMMARY = "list the topics"
DESCRIBE_SUMMARY = "show leaders, in-sync replicas and offsets of each partition"


def add_list_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``list``."""
    parser.add_argument("--internal", action="store_true", help="the cluster's own topics as well")


def add_describe_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``describe``."""
    parser.add_argument("name", metavar="NAME", nargs="?", type=topic_name, help="default: all topics")
    parser.add_argument("--internal", action="store_true", help="the cluster's own topics as well")
    parser.add_argument("--schema", action="store_true", help="the columns of a typed topic alone")


def list_topics(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    if wants_json(arguments):
        return _show_as_json(cluster, _described_topics(cluster, arguments))
    with patience("asking for the topics"):
        topics = Admin(cluster).topics(include_internal=arguments.internal)
    rows = [[topic.name, len(topic.partitions), topic.replication_factor, topic.topic_id] for topic in topics]
    print(
        render_table(["TOPIC", "PARTITIONS", "REPLICATION FACTOR", "ID"], rows, spare=("ID",))
        if rows
        else "no topics"
    )
    return DONE


def describe(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    if arguments.schema and not wants_json(arguments):
        return _describe_schema(cluster, arguments)
    topics = _described_topics(cluster, arguments)
    if wants_json(arguments):
        return _show_as_json(cluster, topics)
    losses = possible_losses(cluster, cluster.metadata(), cluster.deadline(LOSSES_TIMEOUT_MS))
    print("\n\n".join(_described(topic, losses) for topic in topics) if topics else "no topics")
    return DONE


def _describe_schema(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    if arguments.name is None:
        raise UsageError("--schema shows the columns of one topic: give its NAME")
    with patience("asking for the columns"), topic_wanted(cluster, arguments, arguments.name):
        schema = schema_of(cluster, arguments.name)
    show_columns(schema)
    return DONE


def _described_topics(cluster: ClusterClient, arguments: argparse.Namespace) -> list[TopicDescription]:
    name: str | None = getattr(arguments, "name", None)
    with patience("asking for topics and offsets"):
        if name is not None:
            with topic_wanted(cluster, arguments, name):
                return Admin(cluster).describe_topics([name])
        topics = Admin(cluster).describe_topics()
    return [topic for topic in topics if arguments.internal or not topic.is_internal]


def _show_as_json(cluster: ClusterClient, topics: list[TopicDescription]) -> int:
    typed = [topic.name for topic in topics if topic.schema_version]
    schemas = describe_schemas(cluster, typed) if typed else {}
    print(json.dumps({"topics": [topic_as_json(topic, schemas.get(topic.name)) for topic in topics]}))
    return DONE


def topic_as_json(topic: TopicDescription, schema: SchemaDocument | None) -> dict[str, Any]:
    """A topic with Kafka's field names; an offset that its leader did not return is -1."""
    return {
        "name": topic.name,
        "topic_id": str(topic.topic_id),
        "partitions": [_partition_as_json(partition) for partition in topic.partitions],
        "configs": dict(topic.configs),
        "schema": columns_as_json(schema),
    }


def _partition_as_json(partition: PartitionDescription) -> dict[str, Any]:
    return {
        "partition": partition.partition,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "log_start_offset": partition.log_start_offset,
        "local_start_offset": partition.local_start_offset,
        "high_watermark": partition.high_watermark,
        "log_end_offset": partition.log_end_offset,
        **_remote_as_json(partition.remote or RemoteShare()),
    }


def _remote_as_json(share: RemoteShare) -> dict[str, Any]:
    """-1 of a topic that is in no remote store, too."""
    return {
        "remote_start_offset": share.start_offset,
        "remote_end_offset": share.end_offset,
        "remote_log_size_bytes": share.size_bytes,
        "remote_copy_lag_segments": share.lag_segments,
        "remote_copy_lag_bytes": share.lag_bytes,
        "remote_trouble": share.trouble,
    }


def _described(topic: TopicDescription, losses: Sequence[PossibleLoss]) -> str:
    configs = " ".join(f"{name}={value}" for name, value in sorted(topic.configs.items()))
    typed = f", columns: version {topic.schema_version}" if topic.schema_version else ""
    title = f"topic {topic.name}, id {topic.topic_id}{typed}, configs: {configs or 'none of its own'}"
    headers = ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR"]
    headers += ["LOG START", "LOCAL START", "HIGH WATERMARK", "LOG END"]
    rows = [
        [
            partition.partition,
            _known(partition.leader),
            _known(partition.leader_epoch),
            partition.replicas,
            partition.isr,
            _known(partition.log_start_offset),
            _known(partition.local_start_offset),
            _known(partition.high_watermark),
            _known(partition.log_end_offset),
        ]
        for partition in topic.partitions
    ]
    lossy = [loss for loss in losses if loss.topic == topic.name]
    table = render_table(headers, rows, spare=("LOCAL START", "EPOCH", "LOG START"))
    notes = f"\n{render_losses(lossy)}" if lossy else ""
    return f"{title}\n{table}{_in_store(topic)}{notes}"


def _in_store(topic: TopicDescription) -> str:
    """What a remote store has of the topic; empty for one that is in none."""
    shares = {one.partition: one.remote for one in topic.partitions if one.remote is not None}
    if not shares:
        return ""
    headers = ["PARTITION", "START", "END", "BYTES", "SEGMENTS TO COPY", "BYTES TO COPY"]
    rows = [
        [
            partition,
            *map(_known, (share.start_offset, share.end_offset, share.size_bytes)),
            *map(_known, (share.lag_segments, share.lag_bytes)),
        ]
        for partition, share in shares.items()
    ]
    troubles = [
        f"\n{topic.name}-{partition}: {share.trouble}" for partition, share in shares.items() if share.trouble
    ]
    return f"\nin the remote store:\n{render_table(headers, rows)}{''.join(troubles)}"


def _known(number: int) -> int | None:
    return None if number < 0 else number
