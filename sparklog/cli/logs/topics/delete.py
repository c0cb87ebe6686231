"""``sparklog topics delete``: delete a topic and all its records."""

import argparse

from sparklog.cli.command import DONE
from sparklog.cli.progress import patience
from sparklog.cli.topic_names import topic_name, topic_wanted
from sparklog.client.admin import Admin
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import ErrorCode, KafkaError

SUMMARY = "delete a topic with all its records"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the action."""
    parser.add_argument("name", metavar="NAME", type=topic_name)
    parser.add_argument("--if-exists", action="store_true", help="do not complain if there is none")


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
