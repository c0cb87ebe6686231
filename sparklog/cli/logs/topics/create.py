"""``sparklog topics create``: a new topic, with settings of its own."""

import argparse

from sparklog.cli.command import DONE
from sparklog.cli.logs.topics.column_options import add_column_arguments, check_columns, column_settings
from sparklog.cli.progress import patience, say
from sparklog.cli.topic_names import topic_name
from sparklog.cli.values import partition_count, replication_factor, setting
from sparklog.client.admin import Admin, NewTopic
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.settings.config import check_topic_settings

SUMMARY = "create a topic; done when its leaders serve it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the action."""
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
    add_column_arguments(parser)
    parser.add_argument("--if-not-exists", action="store_true", help="do not complain if it is there already")


def check(arguments: argparse.Namespace) -> None:
    """Warn of settings that differ from Kafka's, and refuse columns that no topic can have, before connecting
    to the cluster.
    """
    check_columns(arguments)
    for warning in check_topic_settings(dict(arguments.config)).warnings:
        say(f"warning: {warning}")


def create(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    topic = NewTopic(
        name=arguments.name,
        partitions=arguments.partitions,
        replication_factor=arguments.replication_factor,
        configs={**dict(arguments.config), **column_settings(cluster, arguments)},
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
