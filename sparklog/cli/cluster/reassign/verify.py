"""``sparklog reassign verify``: show the progress of a plan."""

import argparse
import json

from sparklog.cli.cluster.reassign.plan_file import Plan, read_plan
from sparklog.cli.cluster.reassign.standings import look, show
from sparklog.cli.command import DONE, FAILED
from sparklog.cli.connect import wants_json
from sparklog.cli.progress import patience
from sparklog.client.changes import ClusterChanges
from sparklog.client.cluster import ClusterClient


def verify(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    """Show the progress of a plan, or of every move that is under way."""
    with patience("asking how far the moves are"):
        plan = read_plan(arguments.plan) if arguments.plan is not None else _everything(cluster)
        standings = look(cluster, plan)
    if wants_json(arguments):
        print(json.dumps({"partitions": [one.as_json() for one in standings]}))
    elif standings:
        show(standings)
    else:
        print("no move is under way")
    return DONE if all(one.is_done for one in standings) else FAILED


def _everything(cluster: ClusterClient) -> Plan:
    return {one: move.target for one, move in ClusterChanges(cluster).ongoing_moves().items()}
