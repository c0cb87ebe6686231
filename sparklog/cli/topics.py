"""``sparklog topics``: create, list, describe, alter and delete topics."""

import argparse
import json
from collections.abc import Callable
from typing import Any

from sparklog.cli import topics_alter
from sparklog.cli.command import DONE, Command, examples_text
from sparklog.cli.connect import add_cluster_arguments, add_json_argument, connect, wants_json
from sparklog.cli.progress import patience, say
from sparklog.cli.status import render_losses
from sparklog.cli.table import render_table
from sparklog.cli.topic_names import topic_name, topic_wanted
from sparklog.cli.values import partition_count, replication_factor, setting
from sparklog.client.admin import Admin, NewTopic, PartitionDescription, TopicDescription
from sparklog.client.cluster import ClusterClient
from sparklog.model.config import check_topic_settings
from sparklog.model.errors import ErrorCode, KafkaError

EXAMPLES = (
    "sparklog topics create events --partitions 6 --replication-factor 3 --root /tmp/sparklog",
    "sparklog topics create audit --partitions 1 --replication-factor 3 --config min.insync.replicas=2 "
    "--bootstrap-server 127.0.0.1:9092",
    "sparklog topics list --root /tmp/sparklog",
    "sparklog topics describe events --root /tmp/sparklog --json",
    "sparklog topics alter events --partitions 12 --config retention.ms=86400000 --root /tmp/sparklog",
    "sparklog topics delete events --root /tmp/sparklog",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser)
    actions = parser.add_subparsers(dest="action", required=True, metavar="create|list|describe|alter|delete")
    _add_create(actions)
    _add_list(actions)
    _add_describe(actions)
    _add_alter(actions)
    _add_delete(actions)


def run(arguments: argparse.Namespace) -> int:
    action: Callable[[ClusterClient, argparse.Namespace], int] = arguments.do
    if arguments.do is create:
        _check_new_topic(arguments)
    with connect(arguments) as cluster:
        return action(cluster, arguments)


def create(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    topic = NewTopic(
        name=arguments.name,
        partitions=arguments.partitions,
        replication_factor=arguments.replication_factor,
        configs=dict(arguments.config),
    )
    with patience(f"creating topic {topic.name!r}"):
        try:
            topic_id = Admin(cluster).create_topics([topic])[topic.name]
        except KafkaError as error:
            if arguments.if_not_exists and error.code is ErrorCode.topic_already_exists:
                print(f"topic {topic.name!r} is there already")
                return DONE
            raise
    print(f"created topic {topic.name!r} with id {topic_id}")
    return DONE


def list_topics(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    if wants_json(arguments):
        return _show_as_json(_described_topics(cluster, arguments))
    with patience("asking for the topics"):
        topics = Admin(cluster).topics(include_internal=arguments.internal)
    rows = [[topic.name, len(topic.partitions), topic.replication_factor, topic.topic_id] for topic in topics]
    print(render_table(["TOPIC", "PARTITIONS", "REPLICATION FACTOR", "ID"], rows) if rows else "no topics")
    return DONE


def describe(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    topics = _described_topics(cluster, arguments)
    if wants_json(arguments):
        return _show_as_json(topics)
    print("\n\n".join(_described(topic) for topic in topics) if topics else "no topics")
    return DONE


def _described_topics(cluster: ClusterClient, arguments: argparse.Namespace) -> list[TopicDescription]:
    name: str | None = getattr(arguments, "name", None)
    with patience("asking for topics and offsets"):
        if name is not None:
            with topic_wanted(cluster, arguments, name):
                return Admin(cluster).describe_topics([name])
        topics = Admin(cluster).describe_topics()
    return [topic for topic in topics if arguments.internal or not topic.is_internal]


def _show_as_json(topics: list[TopicDescription]) -> int:
    print(json.dumps({"topics": [topic_as_json(topic) for topic in topics]}))
    return DONE


def delete(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    name: str = arguments.name
    with patience(f"deleting topic {name!r}"), topic_wanted(cluster, arguments, name):
        try:
            Admin(cluster).delete_topics([name])
        except KafkaError as error:
            if arguments.if_exists and error.code is ErrorCode.unknown_topic_or_partition:
                print(f"there is no topic {name!r}")
                return DONE
            raise
    print(f"deleted topic {name!r}")
    return DONE


def topic_as_json(topic: TopicDescription) -> dict[str, Any]:
    """A topic under Kafka's field names; an offset that its leader could not tell is -1."""
    return {
        "name": topic.name,
        "topic_id": str(topic.topic_id),
        "partitions": [_partition_as_json(partition) for partition in topic.partitions],
        "configs": dict(topic.configs),
    }


def _partition_as_json(partition: PartitionDescription) -> dict[str, Any]:
    return {
        "partition": partition.partition,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "log_start_offset": partition.log_start_offset,
        "high_watermark": partition.high_watermark,
        "log_end_offset": partition.log_end_offset,
    }


def _described(topic: TopicDescription) -> str:
    configs = " ".join(f"{name}={value}" for name, value in sorted(topic.configs.items()))
    title = f"topic {topic.name}, id {topic.topic_id}, configs: {configs or 'none of its own'}"
    headers = ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "LOG START", "HIGH WATERMARK", "LOG END"]
    rows = [
        [
            partition.partition,
            _known(partition.leader),
            _known(partition.leader_epoch),
            partition.replicas,
            partition.isr,
            _known(partition.log_start_offset),
            _known(partition.high_watermark),
            _known(partition.log_end_offset),
        ]
        for partition in topic.partitions
    ]
    lossy = {
        f"{topic.name}-{one.partition}": one.lost_in_epoch
        for one in topic.partitions
        if one.lost_in_epoch >= 0
    }
    notes = f"\n{render_losses(lossy)}" if lossy else ""
    return f"{title}\n{render_table(headers, rows)}{notes}"


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _check_new_topic(arguments: argparse.Namespace) -> None:
    for warning in check_topic_settings(dict(arguments.config)).warnings:
        say(f"warning: {warning}")


Actions = Any
"""What ``add_subparsers`` returns; argparse has no public name for it."""


def _add_action(actions: Actions, name: str, summary: str, do: Callable[..., int]) -> argparse.ArgumentParser:
    examples = tuple(example for example in EXAMPLES if f"topics {name}" in example)
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=examples_text(examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(do=do)
    return parser


def _add_create(actions: Actions) -> None:
    parser = _add_action(actions, "create", "create a topic; done when its leaders serve it", create)
    parser.add_argument("name", metavar="NAME", type=topic_name)
    parser.add_argument(
        "--partitions",
        type=partition_count,
        default=-1,
        metavar="P",
        help="default: the cluster's num.partitions",
    )
    parser.add_argument(
        "--replication-factor",
        type=replication_factor,
        default=-1,
        metavar="R",
        help="copies of each partition; default: the cluster's default.replication.factor",
    )
    parser.add_argument(
        "-c",
        "--config",
        type=setting,
        action="append",
        default=[],
        metavar="NAME=VALUE ...",
        help="settings of the topic, under Kafka's names; may be repeated",
    )
    parser.add_argument("--if-not-exists", action="store_true", help="do not complain if it is there already")
    add_cluster_arguments(parser)


def _add_list(actions: Actions) -> None:
    parser = _add_action(actions, "list", "list the topics", list_topics)
    parser.add_argument("--internal", action="store_true", help="the cluster's own topics as well")
    add_cluster_arguments(parser)
    add_json_argument(parser)


def _add_describe(actions: Actions) -> None:
    summary = "show leaders, in-sync replicas and offsets of each partition"
    parser = _add_action(actions, "describe", summary, describe)
    parser.add_argument("name", metavar="NAME", nargs="?", type=topic_name, help="default: all topics")
    parser.add_argument("--internal", action="store_true", help="the cluster's own topics as well")
    add_cluster_arguments(parser)
    add_json_argument(parser)


def _add_alter(actions: Actions) -> None:
    parser = _add_action(actions, "alter", topics_alter.SUMMARY, topics_alter.alter)
    topics_alter.add_alter_arguments(parser)
    add_cluster_arguments(parser)
    add_json_argument(parser)


def _add_delete(actions: Actions) -> None:
    parser = _add_action(actions, "delete", "delete a topic with all its records", delete)
    parser.add_argument("name", metavar="NAME", type=topic_name)
    parser.add_argument("--if-exists", action="store_true", help="do not complain if there is none")
    add_cluster_arguments(parser)


COMMAND = Command(
    name="topics",
    summary="create, list, describe, alter and delete topics",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
