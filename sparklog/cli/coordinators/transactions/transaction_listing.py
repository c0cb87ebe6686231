"""``sparklog transactions list``: the transactional ids of a cluster."""

import argparse
import json
from typing import Any, Final

from sparklog.cli.command import DONE, did_you_mean
from sparklog.cli.connect import wants_json
from sparklog.cli.coordinators.transactions.ages import age_ms_of, age_of
from sparklog.cli.coordinators.transactions.owners import app_id_of, kind_of
from sparklog.cli.progress import patience
from sparklog.cli.table import render_table
from sparklog.client.cluster import ClusterClient
from sparklog.client.transactions.transaction_admin import TransactionAdmin, TransactionListing
from sparklog.core.transaction_coordinator.states import AT_REST, TransactionState

STATES: Final = tuple(
    state.label
    for state in TransactionState
    if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
)

NO_TRANSACTION: Final = frozenset(state.label for state in AT_REST)
"""The states in which no transaction is open or being ended."""


def state(text: str) -> str:
    """A state of transactional ids, as a type for argparse; upper and lower case are the same."""
    by_folded = {known.casefold(): known for known in STATES}
    found = by_folded.get(text.casefold())
    if found is None:
        hint = did_you_mean(text, STATES) or f"; there are {', '.join(STATES)}"
        raise argparse.ArgumentTypeError(f"{text!r} is no state of transactional ids{hint}")
    return found


def list_transactions(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    admin = TransactionAdmin(cluster)
    with patience("asking the brokers for their transactions"):
        listed = admin.list_transactions(arguments.state or (), arguments.producer_id or ())
        started = admin.start_times(one for one in listed if one.transaction_state not in NO_TRANSACTION)
    now_ms = cluster.clock.wall_ms()
    if wants_json(arguments):
        transactions = [_as_json(one, started.get(one.transactional_id, -1), now_ms) for one in listed]
        print(json.dumps({"transactions": transactions}))
        return DONE
    rows = [
        [
            one.transactional_id,
            kind_of(one.transactional_id, one.producer_id),
            one.transaction_state,
            age_of(started.get(one.transactional_id, -1), now_ms),
            one.producer_id,
            one.coordinator,
        ]
        for one in listed
    ]
    headers = ["TRANSACTIONAL ID", "OF", "STATE", "AGE", "PRODUCER ID", "COORDINATOR"]
    print(render_table(headers, rows, spare=("COORDINATOR", "OF")) if rows else "no transactional ids")
    return DONE


def _as_json(one: TransactionListing, start_ms: int, now_ms: int) -> dict[str, Any]:
    """Field names as in ListTransactions."""
    return {
        "transactional_id": one.transactional_id,
        "producer_id": one.producer_id,
        "transaction_state": one.transaction_state,
        "coordinator": one.coordinator,
        "age_ms": age_ms_of(start_ms, now_ms),
        "app_id": app_id_of(one.transactional_id, one.producer_id),
    }
