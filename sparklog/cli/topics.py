"""``sparklog topics``: create, list, describe and delete topics."""

import argparse
import json
from collections.abc import Callable
from typing import Any

from sparklog.cli.command import DONE, Command, examples_text
from sparklog.cli.connect import add_cluster_arguments, add_json_argument, connect, wants_json
from sparklog.cli.progress import patience, say
from sparklog.cli.table import render_table
from sparklog.client.admin import Admin, NewTopic, PartitionDescription, TopicDescription
from sparklog.model.config import check_topic_settings
from sparklog.model.errors import ConfigError, ErrorCode, KafkaError
from sparklog.model.ids import topic_name_problem

EXAMPLES = (
    "sparklog topics create events --partitions 6 --replication-factor 3 --root /tmp/sparklog",
    "sparklog topics create audit --partitions 1 --replication-factor 3 --config min.insync.replicas=2 "
    "--bootstrap-server 127.0.0.1:9092",
    "sparklog topics list --root /tmp/sparklog",
    "sparklog topics describe events --root /tmp/sparklog --json",
    "sparklog topics delete events --root /tmp/sparklog",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser)
    actions = parser.add_subparsers(dest="action", required=True, metavar="create|list|describe|delete")
    _add_create(actions)
    _add_list(actions)
    _add_describe(actions)
    _add_delete(actions)


def run(arguments: argparse.Namespace) -> int:
    action: Callable[[Admin, argparse.Namespace], int] = arguments.do
    if arguments.do is create:
        _check_new_topic(arguments)
    with connect(arguments) as cluster:
        return action(Admin(cluster), arguments)


def create(admin: Admin, arguments: argparse.Namespace) -> int:
    topic = NewTopic(
        name=arguments.name,
        partitions=arguments.partitions,
        replication_factor=arguments.replication_factor,
        configs=dict(arguments.config),
    )
    with patience(f"creating topic {topic.name!r}"):
        try:
            topic_id = admin.create_topics([topic])[topic.name]
        except KafkaError as error:
            if arguments.if_not_exists and error.code is ErrorCode.topic_already_exists:
                print(f"topic {topic.name!r} is there already")
                return DONE
            raise
    print(f"created topic {topic.name!r} with id {topic_id}")
    return DONE


def list_topics(admin: Admin, arguments: argparse.Namespace) -> int:
    with patience("asking for the topics"):
        topics = admin.topics(include_internal=arguments.internal)
    if wants_json(arguments):
        listed = [
            {
                "name": topic.name,
                "topic_id": str(topic.topic_id),
                "partition_count": len(topic.partitions),
                "replication_factor": topic.replication_factor,
            }
            for topic in topics
        ]
        print(json.dumps({"topics": listed}))
        return DONE
    rows = [[topic.name, len(topic.partitions), topic.replication_factor, topic.topic_id] for topic in topics]
    print(render_table(["TOPIC", "PARTITIONS", "REPLICATION FACTOR", "ID"], rows) if rows else "no topics")
    return DONE


def describe(admin: Admin, arguments: argparse.Namespace) -> int:
    with patience("asking for topics and offsets"):
        topics = admin.describe_topics(None if arguments.name is None else [arguments.name])
    if wants_json(arguments):
        print(json.dumps({"topics": [topic_as_json(topic) for topic in topics]}))
        return DONE
    print("\n\n".join(_described(topic) for topic in topics) if topics else "no topics")
    return DONE


def delete(admin: Admin, arguments: argparse.Namespace) -> int:
    with patience(f"deleting topic {arguments.name!r}"):
        try:
            admin.delete_topics([arguments.name])
        except KafkaError as error:
            if arguments.if_exists and error.code is ErrorCode.unknown_topic_or_partition:
                print(f"there is no topic {arguments.name!r}")
                return DONE
            raise
    print(f"deleted topic {arguments.name!r}")
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
    return f"{title}\n{render_table(headers, rows)}"


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _check_new_topic(arguments: argparse.Namespace) -> None:
    problem = topic_name_problem(arguments.name)
    if problem is not None:
        raise ConfigError(problem)
    for warning in check_topic_settings(dict(arguments.config)).warnings:
        say(f"warning: {warning}")


def _key_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name.strip(), value


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


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
    parser.add_argument("name", metavar="NAME")
    parser.add_argument(
        "--partitions", type=_positive, default=-1, metavar="P", help="default: the cluster's num.partitions"
    )
    parser.add_argument(
        "--replication-factor",
        type=_positive,
        default=-1,
        metavar="R",
        help="copies of each partition; default: the cluster's default.replication.factor",
    )
    parser.add_argument(
        "-c",
        "--config",
        type=_key_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the topic, under Kafka's name; may be repeated",
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
    parser.add_argument("name", metavar="NAME", nargs="?", help="default: all topics")
    add_cluster_arguments(parser)
    add_json_argument(parser)


def _add_delete(actions: Actions) -> None:
    parser = _add_action(actions, "delete", "delete a topic with all its records", delete)
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--if-exists", action="store_true", help="do not complain if there is none")
    add_cluster_arguments(parser)


COMMAND = Command(
    name="topics",
    summary="create, list, describe and delete topics",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
