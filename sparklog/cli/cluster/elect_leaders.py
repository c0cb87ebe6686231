"""``sparklog elect-leaders``: move leadership to the preferred replicas, or elect an unclean leader.

A preferred election loses nothing, because it elects a replica that is in sync. An unclean election is for
partitions without a leader whose in-sync replicas are all gone: it elects another replica, and records that
only the in-sync replicas have are lost. So it must be requested for each topic, and the possible loss is
printed first. Without the store it also ends a leader's wait for the history in the remote store.
"""

import argparse
import json
from collections.abc import Sequence
from functools import partial
from typing import Final

from sparklog.cli.command import DONE, FAILED, Command, UsageError
from sparklog.cli.connect import add_cluster_arguments, add_json_argument, connect, wants_json
from sparklog.cli.progress import patience, say
from sparklog.cli.table import render_table
from sparklog.cli.topic_names import check_partition, topic_name, topic_wanted
from sparklog.cli.values import partition_number
from sparklog.client.admin import UNKNOWN_TOPIC_WAIT_MS, Admin
from sparklog.client.changes import ClusterChanges, Refusals
from sparklog.client.cluster import ClusterClient
from sparklog.client.metadata.cluster_metadata import ClusterMetadata
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

NOT_NEEDED: Final = "not needed"
METADATA_WAIT_MS: Final = 3_000
REPORTS_WAIT_MS: Final = 5_000
"""How long live replicas may take to report their logs."""
POLL_MS: Final = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--preferred", action="store_true", help="let the first replica lead, if it is in sync; the default"
    )
    kind.add_argument(
        "--unclean",
        action="store_true",
        help="where a partition has no leader, let any live replica lead; loses what only the others had",
    )
    parser.add_argument(
        "--without-store",
        action="store_true",
        help="with --unclean, also where a leader waits for the remote store: gives up what that alone has",
    )
    parser.add_argument("--topic", type=topic_name, metavar="T", help="partitions of this topic")
    parser.add_argument("--partition", type=partition_number, metavar="P", help="this one of --topic alone")
    parser.add_argument("--all", action="store_true", help="all partitions of all topics")
    add_cluster_arguments(parser)
    add_json_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    with connect(arguments) as cluster:
        return elect(cluster, arguments)


def _check(arguments: argparse.Namespace) -> None:
    if arguments.unclean and arguments.topic is None:
        raise UsageError("--unclean may lose records: say of which topic, with --topic T")
    if arguments.without_store and not arguments.unclean:
        raise UsageError("--without-store may lose records: give it together with --unclean")
    if arguments.topic is None and not arguments.all:
        raise UsageError("which partitions? give --topic T, or --all")
    if arguments.topic is not None and arguments.all:
        raise UsageError(f"both --topic {arguments.topic} and --all are given; choose one")
    if arguments.partition is not None and arguments.topic is None:
        raise UsageError(f"--partition {arguments.partition} of which topic? give --topic T")


def elect(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    partitions = None if arguments.all else _partitions(cluster, arguments)
    before = cluster.metadata(None)
    if arguments.unclean and partitions is not None:
        _warn_of_losses(before, partitions)
        if arguments.without_store:
            _warn_of_history(cluster, partitions)
    with patience("electing leaders"):
        elected, refused = _elected(cluster, partitions, arguments)
    _show(arguments, _after(cluster, before, elected), elected, refused)
    failed = [error for error in refused.values() if error.code is not ErrorCode.election_not_needed]
    return FAILED if failed else DONE


def _elected(
    cluster: ClusterClient, partitions: Sequence[TopicPartition] | None, arguments: argparse.Namespace
) -> tuple[list[TopicPartition], Refusals]:
    """Elected and refused. An unclean election needs a replica's report, which follows a broker's start."""
    demand = partial(
        ClusterChanges(cluster).elect_leaders,
        unclean=arguments.unclean,
        without_store=arguments.without_store,
    )
    deadline = cluster.deadline(REPORTS_WAIT_MS)
    elected, refused = demand(partitions)
    while not deadline.is_over and (unreported := _unreported(cluster.metadata(None), refused)):
        cluster.wait(POLL_MS)
        more, still_refused = demand(unreported)
        elected += more
        refused = {one: why for one, why in refused.items() if one not in unreported} | still_refused
    return elected, refused


def _unreported(seen: ClusterMetadata, refused: Refusals) -> list[TopicPartition]:
    """The partitions that have a live replica, none of which has reported its log yet."""
    return [
        partition
        for partition, error in refused.items()
        if error.code is ErrorCode.eligible_leaders_not_available
        and any(one in seen.brokers for one in _replicas(seen, partition))
    ]


def _replicas(seen: ClusterMetadata, partition: TopicPartition) -> Sequence[int]:
    topic = seen.topics.get(partition.topic)
    state = topic.partitions.get(partition.partition) if topic else None
    return () if state is None else state.replicas


def _after(
    cluster: ClusterClient, before: ClusterMetadata, elected: Sequence[TopicPartition]
) -> ClusterMetadata:
    """The metadata after the elections: waits until the queried broker has received the new leaders."""
    deadline = cluster.deadline(METADATA_WAIT_MS)
    while True:
        seen = cluster.metadata(None)
        if deadline.is_over or all(_epoch(seen, one) != _epoch(before, one) for one in elected):
            return seen
        cluster.wait(POLL_MS)


def _epoch(seen: ClusterMetadata, partition: TopicPartition) -> int:
    topic = seen.topics.get(partition.topic)
    state = topic.partitions.get(partition.partition) if topic else None
    return -1 if state is None else state.leader_epoch


def _partitions(cluster: ClusterClient, arguments: argparse.Namespace) -> list[TopicPartition]:
    name: str = arguments.topic
    with patience(f"looking for topic {name!r}"), topic_wanted(cluster, arguments, name):
        topic = cluster.topic(name, timeout_ms=UNKNOWN_TOPIC_WAIT_MS)
    if arguments.partition is None:
        return topic.topic_partitions()
    check_partition(topic, arguments.partition)
    return [TopicPartition(name, arguments.partition)]


def _warn_of_losses(seen: ClusterMetadata, partitions: Sequence[TopicPartition]) -> None:
    for partition in partitions:
        state = seen.topics[partition.topic].partitions[partition.partition]
        live = [one for one in state.replicas if one in seen.brokers]
        if state.leader in seen.brokers or not live:
            continue  # no new leader will be elected
        say(
            f"warning: {partition}: in sync are {list(state.isr)}, alive {live}; acknowledged "
            f"records that only {list(state.isr)} have will be lost, also when they return"
        )


def _warn_of_history(cluster: ClusterClient, partitions: Sequence[TopicPartition]) -> None:
    """Name the offsets that are given up, as far as leaders know them."""
    topic = partitions[0].topic
    wanted = {partition.partition for partition in partitions}
    for described in Admin(cluster).describe_topics([topic])[0].partitions:
        share = described.remote
        if described.partition not in wanted or share is None:
            continue
        what = "what its history in the remote store has"
        if share.start_offset >= 0:
            what = f"of offsets {share.start_offset} to {share.end_offset - 1} in the remote store"
        why = f" ({share.trouble})" if share.trouble else ""
        say(f"warning: {topic}-{described.partition}: {what} beyond the leader's log is given up{why}")


def _show(
    arguments: argparse.Namespace,
    seen: ClusterMetadata,
    elected: Sequence[TopicPartition],
    refused: Refusals,
) -> None:
    results = {
        **dict.fromkeys(elected, "elected"),
        **{
            partition: NOT_NEEDED if error.code is ErrorCode.election_not_needed else f"refused: {error}"
            for partition, error in refused.items()
        },
    }
    leaders = {partition: _leader(seen, partition) for partition in results}
    if wants_json(arguments):
        listed = [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "result": results[partition].partition(":")[0],
                "leader": leaders[partition],
                "error": refused[partition].code.name if partition in refused else None,
                "message": refused[partition].message if partition in refused else None,
            }
            for partition in sorted(results)
        ]
        print(json.dumps({"partitions": listed}))
    elif results:
        rows = [
            [
                partition.topic,
                partition.partition,
                None if leaders[partition] < 0 else leaders[partition],
                one,
            ]
            for partition, one in sorted(results.items())
        ]
        print(render_table(["TOPIC", "PARTITION", "LEADER", "RESULT"], rows))
    else:
        print("every partition is led by its preferred replica")


def _leader(seen: ClusterMetadata, partition: TopicPartition) -> int:
    topic = seen.topics.get(partition.topic)
    state = topic.partitions.get(partition.partition) if topic else None
    return -1 if state is None else int(state.leader)


COMMAND = Command(
    name="elect-leaders",
    summary="let preferred replicas lead, or any live one where a partition has no leader",
    add_arguments=add_arguments,
    run=run,
    examples=(
        "sparklog elect-leaders --all --root /tmp/sparklog",
        "sparklog elect-leaders --preferred --topic events --partition 0 --bootstrap-server 127.0.0.1:9092",
        "sparklog elect-leaders --unclean --topic events --root /tmp/sparklog",
    ),
)
