"""``sparklog reassign cancel``: cancel moves that are under way.

A partition returns to the replicas that it had when its move began; added replicas are removed.
"""

import argparse
import json
from collections.abc import Mapping
from typing import Final

from sparklog.cli.cluster.reassign.execute import tell_refusals
from sparklog.cli.cluster.reassign.plan_file import read_plan
from sparklog.cli.command import DONE, FAILED
from sparklog.cli.connect import wants_json
from sparklog.cli.progress import patience
from sparklog.client.changes import ClusterChanges, OngoingMove
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

POLL_MS: Final = 100


def cancel(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    """Cancel the moves of the plan that are under way, or all moves."""
    plan = read_plan(arguments.plan) if arguments.plan is not None else None
    changes = ClusterChanges(cluster)
    with patience("taking moves back"):
        ongoing = changes.ongoing_moves()
        chosen = [one for one in sorted(ongoing) if plan is None or one in plan]
        refused = changes.reassign(dict.fromkeys(chosen)) if chosen else {}
    # A move that ended meanwhile cannot be cancelled.
    over = [one for one, error in refused.items() if error.code is ErrorCode.no_reassignment_in_progress]
    for one in over:
        del refused[one]
    tell_refusals(refused)
    back = [one for one in chosen if one not in refused and one not in over]
    _wait_until_back(cluster, back)
    _show_cancelled(arguments, back, ongoing, over)
    return FAILED if refused else DONE


def _wait_until_back(cluster: ClusterClient, partitions: list[TopicPartition]) -> None:
    """Wait until the metadata has the original replicas, so that the next command gets them."""
    changes = ClusterChanges(cluster)
    while partitions and set(partitions) & changes.ongoing_moves().keys():
        cluster.wait(POLL_MS)


def _show_cancelled(
    arguments: argparse.Namespace,
    back: list[TopicPartition],
    ongoing: Mapping[TopicPartition, OngoingMove],
    over: list[TopicPartition],
) -> None:
    origins = {
        one: tuple(broker for broker in ongoing[one].replicas if broker not in ongoing[one].adding)
        for one in back
    }
    if wants_json(arguments):
        entries = [
            {"topic": one.topic, "partition": one.partition, "replicas": list(origins[one])} for one in back
        ]
        print(json.dumps({"partitions": entries}))
        return
    for one in back:
        adding = list(ongoing[one].adding)
        print(f"{one}: cancelled; the copies on brokers {adding} go, {sorted(origins[one])} stay")
    for one in over:
        print(f"{one}: done already")
    if not back and not over:
        print("no move is under way")
