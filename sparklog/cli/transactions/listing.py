"""``sparklog transactions list``: the transactional ids of a cluster."""

import argparse
import json
from typing import Final

from sparklog.cli.command import DONE, did_you_mean
from sparklog.cli.connect import wants_json
from sparklog.cli.progress import patience
from sparklog.cli.table import render_table
from sparklog.client.cluster import ClusterClient
from sparklog.client.transactions.transaction_admin import TransactionAdmin
from sparklog.core.transaction_coordinator.states import TransactionState

STATES: Final = tuple(
    state.label
    for state in TransactionState
    if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
)


def state(text: str) -> str:
    """A state of transactional ids, as a type for argparse; upper and lower case are the same."""
    by_folded = {known.casefold(): known for known in STATES}
    found = by_folded.get(text.casefold())
    if found is None:
        hint = did_you_mean(text, STATES) or f"; there are {', '.join(STATES)}"
        raise argparse.ArgumentTypeError(f"{text!r} is no state of transactional ids{hint}")
    return found


def list_transactions(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    with patience("asking the brokers for their transactions"):
        listed = TransactionAdmin(cluster).list_transactions(
            arguments.state or (), arguments.producer_id or ()
        )
    if wants_json(arguments):
        transactions = [
            {
                "transactional_id": one.transactional_id,
                "producer_id": one.producer_id,
                "transaction_state": one.transaction_state,
                "coordinator": one.coordinator,
            }
            for one in listed
        ]
        print(json.dumps({"transactions": transactions}))
        return DONE
    rows = [[one.transactional_id, one.transaction_state, one.producer_id, one.coordinator] for one in listed]
    headers = ["TRANSACTIONAL ID", "STATE", "PRODUCER ID", "COORDINATOR"]
    print(render_table(headers, rows) if rows else "no transactional ids")
    return DONE
