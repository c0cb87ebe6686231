"""``sparklog topics alter``: add partitions, change settings, or both; or change columns.

Either all changes are made or none: the controller checks them before it carries out any.
"""

import argparse
import json
from collections.abc import Mapping

from sparklog.cli.cluster.configs.setting_changes import Changed, changed_by, changes_of
from sparklog.cli.command import DONE, UsageError
from sparklog.cli.connect import wants_json
from sparklog.cli.logs.topics.column_changes import add_change_arguments, alter_columns
from sparklog.cli.progress import patience, say
from sparklog.cli.topic_names import topic_name, topic_wanted
from sparklog.cli.values import partition_count, setting
from sparklog.client.admin import UNKNOWN_TOPIC_WAIT_MS
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.client.settings import describe_topic
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.kafka_numbers import ConfigSource

SUMMARY = "give a topic more partitions, other settings, or other columns"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the action."""
    parser.add_argument("name", metavar="NAME", type=topic_name)
    parser.add_argument(
        "--partitions",
        type=partition_count,
        metavar="N",
        help="how many there shall be in all; records stay where they are, so a key may change its partition",
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
    parser.add_argument(
        "--delete-config",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="settings to give back to the brokers' default",
    )
    add_change_arguments(parser)


def alter(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    name: str = arguments.name
    change = changes_of(arguments.config, arguments.delete_config, is_topic=True)
    if arguments.columns:
        if change or arguments.partitions is not None:
            raise UsageError(
                "columns are changed by themselves: give --partitions and --config in another alter"
            )
        return alter_columns(cluster, arguments)
    if not change and arguments.partitions is None:
        raise UsageError(
            "nothing to change; give --partitions N, --config NAME=VALUE, --delete-config NAME or a change "
            "of columns, such as --add-column 'NAME TYPE'"
        )
    with patience(f"changing topic {name!r}"), topic_wanted(cluster, arguments, name):
        before = len(cluster.topic(name, timeout_ms=UNKNOWN_TOPIC_WAIT_MS).partitions)
        settings = describe_topic(cluster, name)
        _change(ClusterChanges(cluster), name, before, arguments.partitions, change)
    _show(
        arguments,
        name,
        before,
        arguments.partitions or before,
        changed_by(change, settings, ConfigSource.TOPIC),
    )
    return DONE


def _change(
    changes: ClusterChanges, name: str, before: int, partitions: int | None, change: Mapping[str, str | None]
) -> None:
    if change and partitions is not None:
        changes.alter_topic_configs(name, change, validate_only=True)
    if partitions is not None and partitions != before:
        try:
            changes.create_partitions(name, partitions)
        except KafkaError as error:
            if error.code is ErrorCode.invalid_partitions and partitions < before:
                remedy = f"--partitions {partitions}: topic {name!r} has {before}, and cannot have fewer"
                raise KafkaError(error.code, remedy) from None
            raise
    if change:
        changes.alter_topic_configs(name, change)


def _show(
    arguments: argparse.Namespace, name: str, before: int, partitions: int, changed: list[Changed]
) -> None:
    if wants_json(arguments):
        topic = {
            "name": name,
            "partition_count": {"before": before, "after": partitions},
            "configs": [one.as_json() for one in changed],
        }
        print(json.dumps({"topics": [topic]}))
        return
    if partitions != before:
        print(f"topic {name!r}: {before} -> {partitions} partitions")
        old = "partition 0" if before == 1 else f"partitions 0 to {before - 1}"
        say(f"note: records of a key that are in {old} stay there; new ones may not")
    for one in changed:
        print(f"topic {name!r}: {one}")
    if partitions == before and not changed:
        print(f"topic {name!r}: nothing to change, it is so already")
