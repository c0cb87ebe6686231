"""``sparklog groups list``: the groups of a cluster."""

import argparse
import json
from typing import Final

from sparklog.cli.command import DONE, did_you_mean
from sparklog.cli.connect import wants_json
from sparklog.cli.progress import patience
from sparklog.cli.table import render_table
from sparklog.client.cluster import ClusterClient
from sparklog.client.group.group_admin import GroupAdmin

STATES: Final = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")


def state(text: str) -> str:
    """A state of groups, as a type for argparse; upper and lower case are the same."""
    by_folded = {known.casefold(): known for known in STATES}
    found = by_folded.get(text.casefold())
    if found is None:
        hint = did_you_mean(text, STATES) or f"; there are {', '.join(STATES)}"
        raise argparse.ArgumentTypeError(f"{text!r} is no state of groups{hint}")
    return found


def list_groups(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    with patience("asking the brokers for their groups"):
        groups = GroupAdmin(cluster).list_groups(arguments.state or ())
    if wants_json(arguments):
        listed = [
            {
                "group_id": group.group_id,
                "protocol_type": group.protocol_type,
                "group_state": group.group_state,
                "coordinator": group.coordinator,
            }
            for group in groups
        ]
        print(json.dumps({"groups": listed}))
        return DONE
    rows = [[group.group_id, group.group_state, group.protocol_type, group.coordinator] for group in groups]
    print(
        render_table(["GROUP", "STATE", "PROTOCOL TYPE", "COORDINATOR"], rows, spare=("PROTOCOL TYPE",))
        if rows
        else "no groups"
    )
    return DONE
