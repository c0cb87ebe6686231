"""``sparklog configs``: show the settings of a topic, a broker or all brokers, and change them at run time.

Only settings that differ from the default are shown; ``--all`` shows the others, and those that identify a
broker, too. A broker's settings are requested from that broker, because only it has the settings of its
start.
"""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from sparklog.cli.action_parsers import Actions, add_action, add_actions, run_action
from sparklog.cli.cluster.configs.setting_changes import SOURCES, Changed, changed_by, changes_of
from sparklog.cli.command import DONE, Command, UsageError
from sparklog.cli.connect import wants_json
from sparklog.cli.progress import patience
from sparklog.cli.table import render_table
from sparklog.cli.topic_names import topic_name, topic_wanted
from sparklog.cli.values import natural, setting
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient
from sparklog.client.settings import (
    DescribedSetting,
    Settings,
    describe_all_brokers,
    describe_broker,
    describe_topic,
)
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.kafka_numbers import ConfigSource
from sparklog.model.schema.schema_settings import SCHEMA_SETTINGS
from sparklog.model.settings.settings_table import IDENTITY_SETTINGS

EXAMPLES = (
    "sparklog configs describe --topic events --root /tmp/sparklog",
    "sparklog configs describe --broker 1 --all --bootstrap-server 127.0.0.1:9092",
    "sparklog configs alter --topic events --set retention.ms=86400000 --delete max.message.bytes "
    "--root /tmp/sparklog",
    "sparklog configs alter --all-brokers --set log.retention.ms=86400000 --root /tmp/sparklog",
)

Found = dict[str, Settings]
"""The settings of each resource, by the resource's name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser, "describe|alter")
    _add_describe(actions)
    _add_alter(actions)


def run(arguments: argparse.Namespace) -> int:
    return run_action(arguments, _check)


def _check(arguments: argparse.Namespace) -> None:
    if arguments.action == "alter":
        arguments.changes = changes_of(arguments.set, arguments.delete, is_topic=arguments.topic is not None)
        if not arguments.changes:
            raise UsageError("nothing to change; give --set NAME=VALUE, or --delete NAME")


def describe(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    with patience("asking for the settings"):
        found = _found(cluster, arguments)
    shown = {
        name: {
            key: one
            for key, one in settings.items()
            if arguments.all or (one.source is not ConfigSource.DEFAULT and one.name not in IDENTITY_SETTINGS)
        }
        for name, settings in found.items()
    }
    if wants_json(arguments):
        kind = "topic" if arguments.topic is not None else "broker"
        print(json.dumps({"configs": [_as_json(kind, name, one) for name, one in _flat(shown)]}))
    elif not any(shown.values()):
        what = f"{_words(arguments)} {'have' if arguments.all_brokers else 'has'}"
        print(f"{what} nothing but defaults; --all shows them")
    elif arguments.all_brokers:
        print(_table_of_brokers(shown))
    else:
        headers = ["SETTING", "VALUE", "SOURCE", "CHANGES"]
        print(render_table(headers, [_row(one) for _, one in _flat(shown)], spare=("CHANGES",)))
    return DONE


def _found(cluster: ClusterClient, arguments: argparse.Namespace) -> Found:
    if arguments.topic is not None:
        with topic_wanted(cluster, arguments, arguments.topic):
            return {arguments.topic: describe_topic(cluster, arguments.topic)}
    if arguments.broker is not None:
        return {str(arguments.broker): _described(cluster, arguments.broker)}
    live = sorted(cluster.metadata([], max_age_ms=0).brokers)
    return {str(broker): _described(cluster, broker) for broker in live}


def _described(cluster: ClusterClient, broker: int) -> Settings:
    try:
        return describe_broker(cluster, broker)
    except KafkaError as error:
        if error.code is not ErrorCode.broker_not_available:
            raise
        live = sorted(cluster.metadata([], max_age_ms=0).brokers)
        raise SparklogError(
            f"broker {broker} is not alive, so its settings are not available; alive are {live}"
        ) from None


def _flat(found: Found) -> list[tuple[str, DescribedSetting]]:
    return [(name, settings[key]) for name, settings in found.items() for key in sorted(settings)]


def _as_json(kind: str, resource: str, one: DescribedSetting) -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": resource,
        "name": one.name,
        "value": one.value,
        "config_source": one.source.name.lower(),
        "read_only": one.read_only,
        "synonyms": [
            {"name": level.name, "value": level.value, "source": level.source.name.lower()}
            for level in one.synonyms
        ],
    }


def _row(one: DescribedSetting) -> list[object]:
    changes = "at start" if one.read_only else "while it runs"
    if one.name in SCHEMA_SETTINGS:
        changes = "never"
    return [one.name, one.value, SOURCES[one.source], changes]


def _table_of_brokers(found: Found) -> str:
    """A row for each value, with the brokers that have that value."""
    rows: dict[tuple[object, ...], list[str]] = {}
    for broker, one in sorted(_flat(found), key=lambda pair: pair[1].name):
        rows.setdefault(tuple(_row(one)), []).append(broker)
    headers = ["SETTING", "VALUE", "SOURCE", "CHANGES", "BROKERS"]
    return render_table(headers, [[*row, brokers] for row, brokers in rows.items()], spare=("CHANGES",))


def _words(arguments: argparse.Namespace) -> str:
    if arguments.topic is not None:
        return f"topic {arguments.topic!r}"
    return f"broker {arguments.broker}" if arguments.broker is not None else "all brokers"


def alter(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    change: Mapping[str, str | None] = arguments.changes
    with patience(f"changing settings of {_words(arguments)}"):
        changed = _alter(cluster, arguments, change)
    if wants_json(arguments):
        print(json.dumps({"configs": [one.as_json() for one in changed]}))
        return DONE
    for one in changed:
        print(f"{_words(arguments)}: {one}")
    if not changed:
        print(f"{_words(arguments)}: nothing to change, it is so already")
    return DONE


def _alter(
    cluster: ClusterClient, arguments: argparse.Namespace, change: Mapping[str, str | None]
) -> list[Changed]:
    changes = ClusterChanges(cluster)
    if arguments.topic is not None:
        with topic_wanted(cluster, arguments, arguments.topic):
            before, level = describe_topic(cluster, arguments.topic), ConfigSource.TOPIC
            changes.alter_topic_configs(arguments.topic, change)
    elif arguments.broker is not None:
        before, level = _before_at(cluster, arguments.broker), ConfigSource.DYNAMIC_BROKER
        changes.alter_broker_configs(arguments.broker, change)
    else:
        before, level = describe_all_brokers(cluster), ConfigSource.DYNAMIC_DEFAULT_BROKER
        changes.alter_broker_configs(None, change)
    return changed_by(change, before, level)


def _before_at(cluster: ClusterClient, broker: int) -> Settings:
    """The broker's settings; empty if it is down. Its changes then apply from its next start."""
    try:
        return describe_broker(cluster, broker)
    except SparklogError:
        return {}


def _add_resource(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--topic", type=topic_name, metavar="T", help="settings of this topic")
    group.add_argument("--broker", type=natural, metavar="N", help="settings of the broker with this id")
    group.add_argument("--all-brokers", action="store_true", help="settings of every broker")


def _add_describe(actions: Actions) -> None:
    summary = "show settings that differ from the default, with where they come from"
    parser = add_action(actions, "describe", summary, describe, EXAMPLES)
    _add_resource(parser)
    parser.add_argument("--all", action="store_true", help="the defaults as well")


def _add_alter(actions: Actions) -> None:
    summary = "change settings while everything runs"
    parser = add_action(actions, "alter", summary, alter, EXAMPLES)
    _add_resource(parser)
    parser.add_argument(
        "--set",
        type=setting,
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="under Kafka's names",
    )
    parser.add_argument(
        "--delete",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="give back to what lies under it: the broker's value, or the default",
    )


COMMAND = Command(
    name="configs",
    summary="show and change settings of topics and brokers",
    add_arguments=add_arguments,
    run=run,
    examples=EXAMPLES,
)
