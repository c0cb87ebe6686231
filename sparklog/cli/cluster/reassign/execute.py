"""``sparklog reassign execute``: begin the moves of a plan, and wait until they are done.

The controller carries out the moves, and continues if this command ends early. A throttle ends with them.
"""

import argparse
import json
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sparklog.cli.cluster.reassign.plan_file import Plan, read_plan
from sparklog.cli.cluster.reassign.proposal import placement_of
from sparklog.cli.cluster.reassign.standings import look, show
from sparklog.cli.command import DONE, FAILED
from sparklog.cli.connect import cluster_words, wants_json
from sparklog.cli.progress import REPORT_EVERY_S, patience, say
from sparklog.client.changes import ClusterChanges, OngoingMove, Refusals
from sparklog.client.cluster import ClusterClient
from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition

POLL_MS: Final = 250


def execute(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    plan = read_plan(arguments.plan)
    with patience("beginning the moves"):
        before = _placement(cluster, plan)
        ongoing = ClusterChanges(cluster).ongoing_moves()
        _tell_what_is_replaced(plan, ongoing)
        refused = _begin(cluster, plan, before, arguments.throttle)
    tell_refusals(refused)
    begun = {one: replicas for one, replicas in plan.items() if one not in refused}
    if not arguments.no_wait and begun:
        try:
            _watch(cluster, begun, before)
        except KeyboardInterrupt:
            say(f"interrupted; the moves go on. {_how_to_go_on(arguments)}")
            return FAILED
    return _conclude(cluster, arguments, plan, refused)


def _conclude(cluster: ClusterClient, arguments: argparse.Namespace, plan: Plan, refused: Refusals) -> int:
    standings = look(cluster, plan)
    if wants_json(arguments):
        print(json.dumps({"partitions": [one.as_json() for one in standings]}))
    else:
        show(standings)
    if arguments.no_wait:
        say(_how_to_go_on(arguments))
        return FAILED if refused else DONE
    return DONE if all(one.is_done for one in standings) and not refused else FAILED


def _placement(cluster: ClusterClient, plan: Plan) -> Plan:
    """The current replicas of the plan's partitions; SparklogError for an unknown partition."""
    topics = sorted({one.topic for one in plan})
    seen = cluster.metadata(None)
    missing = [name for name in topics if name not in seen.topics]
    if missing:
        raise SparklogError(f"the plan names {missing[0]!r}, but there is no such topic; nothing was moved")
    before = placement_of(seen, topics)
    unknown = sorted(one for one in plan if one not in before)
    if unknown:
        raise SparklogError(f"the plan names {unknown[0]}, but there is no such partition; nothing was moved")
    return before


def _tell_what_is_replaced(plan: Plan, ongoing: Mapping[TopicPartition, OngoingMove]) -> None:
    for partition, move in sorted(ongoing.items()):
        if partition in plan and plan[partition] != move.target:
            old, new = list(move.target), list(plan[partition])
            say(f"warning: {partition} is on its way to {old}; it goes to {new} instead")


def _begin(cluster: ClusterClient, plan: Plan, before: Plan, bytes_per_s: int | None) -> Refusals:
    refused, operation = ClusterChanges(cluster).reassign_with_throttle(plan, bytes_per_s or -1)
    if bytes_per_s is None:
        return refused
    if operation >= 0:
        say(
            f"operation {operation} limits what each broker sends and fetches for these moves to "
            f"{bytes_per_s} bytes a second, until they are done"
        )
    elif any(set(plan[one]) - set(before[one]) for one in plan if one not in refused):
        say("warning: the moves are not limited, because the controller is of an older release")
    return refused


def tell_refusals(refused: Refusals) -> None:
    for partition, error in sorted(refused.items()):
        say(f"{partition} is not moved: {error.message or error.code.name}")


def _watch(cluster: ClusterClient, plan: Plan, before: Plan) -> None:
    """Print the progress every few seconds until no move of ``plan`` is under way."""
    begun_s = reported_s = time.monotonic()
    while True:
        ongoing = {one: move for one, move in ClusterChanges(cluster).ongoing_moves().items() if one in plan}
        if not ongoing:
            return
        now_s = time.monotonic()
        if now_s - reported_s >= REPORT_EVERY_S:
            reported_s = now_s
            say(_how_far(cluster, plan, ongoing, round(now_s - begun_s)))
        cluster.wait(POLL_MS)


def _how_far(
    cluster: ClusterClient, plan: Plan, ongoing: Mapping[TopicPartition, OngoingMove], seconds: int
) -> str:
    seen = cluster.metadata(sorted({one.topic for one in ongoing}), max_age_ms=0)
    waiting = {one: set(move.adding) for one, move in ongoing.items()}
    for partition, adding in waiting.items():
        topic = seen.topics.get(partition.topic)
        state = topic.partitions.get(partition.partition) if topic else None
        adding -= set(state.isr if state else ())
    lagging = [str(one) for one in sorted(waiting) if waiting[one]]
    text = f"{len(plan) - len(ongoing)} of {len(plan)} partitions are moved after {seconds} s"
    count = sum(len(adding) for adding in waiting.values())
    if not count:
        return text
    more = f" and {len(lagging) - 3} more" if len(lagging) > 3 else ""
    are = "new replica is" if count == 1 else "new replicas are"
    return f"{text}; {count} {are} not in sync yet, of {', '.join(lagging[:3])}{more}"


def _how_to_go_on(arguments: argparse.Namespace) -> str:
    path: Path = arguments.plan
    words = f"--plan {shlex.quote(str(path))} {cluster_words(arguments)}"
    return (
        f"`sparklog reassign verify {words}` tells how far they are, "
        f"`sparklog reassign cancel {words}` takes them back"
    )
