"""``sparklog groups delete`` and ``delete-offsets``: what a group no longer needs."""

import argparse
import json
from typing import Final

from sparklog.cli.command import DONE, FAILED
from sparklog.cli.connect import wants_json
from sparklog.cli.coordinators.groups.partitions import NamedPartitions, named_partitions
from sparklog.cli.progress import patience, say
from sparklog.client.cluster import ClusterClient
from sparklog.client.group.committed_offsets import delete_offsets, fetch_committed
from sparklog.client.group.group_admin import GroupAdmin
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.ids import TopicPartition

_REASONS: Final = {
    ErrorCode.non_empty_group: "it has members; stop its consumers first",
    ErrorCode.group_id_not_found: "there is no such group",
    ErrorCode.group_subscribed_to_topic: "its members subscribe to the topic; stop them first",
}


def delete_groups(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    groups = list(dict.fromkeys(arguments.groups))
    with patience("deleting groups"):
        outcomes = GroupAdmin(cluster).delete(groups)
    if wants_json(arguments):
        listed = [{"group_id": group_id, "error_code": int(code)} for group_id, code in outcomes.items()]
        print(json.dumps({"groups": listed}))
    for group_id, code in outcomes.items():
        if code is not ErrorCode.none:
            say(f"group {group_id!r} was not deleted: {reason(code)}")
        elif not wants_json(arguments):
            print(f"deleted group {group_id!r}")
    return DONE if all(code is ErrorCode.none for code in outcomes.values()) else FAILED


def delete_group_offsets(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    group_id: str = arguments.group
    coordinator = GroupAdmin(cluster).coordinator(group_id)
    with patience(f"deleting offsets of group {group_id!r}"):
        wanted = _committed_partitions(cluster, arguments, list(fetch_committed(coordinator)))
        try:
            refused = delete_offsets(coordinator, wanted)
        except KafkaError as error:
            raise SparklogError(
                f"no offset of group {group_id!r} was deleted: {reason(error.code)}"
            ) from None
    if wants_json(arguments):
        listed = [
            {
                "topic": one.topic,
                "partition": one.partition,
                "error_code": int(refused.get(one, ErrorCode.none)),
            }
            for one in wanted
        ]
        print(json.dumps({"group_id": group_id, "offsets": listed}))
    for topic_partition in wanted:
        code = refused.get(topic_partition)
        if code is not None:
            say(f"the offset of {topic_partition} was not deleted: {reason(code)}")
        elif not wants_json(arguments):
            print(f"deleted the offset of {topic_partition}")
    return FAILED if refused else DONE


def _committed_partitions(
    cluster: ClusterClient, arguments: argparse.Namespace, committed: list[TopicPartition]
) -> list[TopicPartition]:
    """The partitions that ``--topic`` names. A topic that does not exist any more may be named, too."""
    topics: list[NamedPartitions] = arguments.topic
    gone = {one.topic for one in committed} - cluster.metadata().topics.keys()
    wanted = {
        one
        for one in committed
        for name, numbers in topics
        if one.topic == name and name in gone and (numbers is None or one.partition in numbers)
    }
    existing = [one for one in topics if one.topic not in gone]
    return sorted(
        {*wanted, *(one for one in named_partitions(cluster, arguments, existing) if one in committed)}
    )


def reason(code: ErrorCode) -> str:
    """An error code of a deletion in words."""
    return _REASONS.get(code, code.name.upper())
