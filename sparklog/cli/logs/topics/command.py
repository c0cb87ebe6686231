"""``sparklog topics``: create, list, describe, alter and delete topics."""

import argparse
from collections.abc import Callable
from typing import Any

from sparklog.cli.command import Command, examples_text
from sparklog.cli.connect import add_cluster_arguments, add_json_argument, connect
from sparklog.cli.logs.topics import alter, create, delete, show
from sparklog.client.cluster import ClusterClient

EXAMPLES = (
    "sparklog topics create events --partitions 6 --replication-factor 3 --root /tmp/sparklog",
    "sparklog topics create audit --partitions 1 --replication-factor 3 --config min.insync.replicas=2 "
    "--bootstrap-server 127.0.0.1:9092",
    "sparklog topics create quakes --schema 'id bigint NOT NULL, mag double' --key id --root /tmp/sparklog",
    "sparklog topics list --root /tmp/sparklog",
    "sparklog topics describe events --root /tmp/sparklog --json",
    "sparklog topics describe quakes --schema --root /tmp/sparklog",
    "sparklog topics alter events --partitions 12 --config retention.ms=86400000 --root /tmp/sparklog",
    "sparklog topics alter quakes --add-column 'depth double' --rename-column mag=size --root /tmp/sparklog",
    "sparklog topics delete events --root /tmp/sparklog",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser)
    actions = parser.add_subparsers(dest="action", required=True, metavar="create|list|describe|alter|delete")
    creating = _add_action(actions, "create", create.SUMMARY, create.create)
    create.add_arguments(creating)
    add_cluster_arguments(creating)
    listing = _add_action(actions, "list", show.LIST_SUMMARY, show.list_topics)
    show.add_list_arguments(listing)
    describing = _add_action(actions, "describe", show.DESCRIBE_SUMMARY, show.describe)
    show.add_describe_arguments(describing)
    altering = _add_action(actions, "alter", alter.SUMMARY, alter.alter)
    alter.add_arguments(altering)
    for action in (listing, describing, altering):
        add_cluster_arguments(action)
        add_json_argument(action)
    deleting = _add_action(actions, "delete", delete.SUMMARY, delete.delete)
    delete.add_arguments(deleting)
    add_cluster_arguments(deleting)


def run(arguments: argparse.Namespace) -> int:
    action: Callable[[ClusterClient, argparse.Namespace], int] = arguments.do
    if action is create.create:
        create.check(arguments)
    with connect(arguments) as cluster:
        return action(cluster, arguments)


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


COMMAND = Command(
    name="topics",
    summary="create, list, describe, alter and delete topics",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
