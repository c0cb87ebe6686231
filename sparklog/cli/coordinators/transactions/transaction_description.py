"""``sparklog transactions describe``: a transactional id, and its latest transaction."""

import argparse
import json
from typing import Any

from sparklog.cli.command import DONE, did_you_mean
from sparklog.cli.connect import cluster_words, wants_json
from sparklog.cli.coordinators.transactions.ages import age_ms_of, age_of, moment_of
from sparklog.cli.coordinators.transactions.owners import app_id_of, owner_of
from sparklog.cli.coordinators.transactions.transaction_listing import NO_TRANSACTION
from sparklog.cli.progress import patience
from sparklog.cli.table import render_table
from sparklog.client.cluster import ClusterClient
from sparklog.client.transactions.transaction_admin import TransactionAdmin, TransactionDescription
from sparklog.model.cluster_facts import host_port
from sparklog.model.errors import SparklogError


def describe(cluster: ClusterClient, arguments: argparse.Namespace) -> int:
    described = [find_transactional_id(cluster, arguments, one) for one in _ids(arguments)]
    now_ms = cluster.clock.wall_ms()
    if wants_json(arguments):
        print(json.dumps({"transactions": [_as_json(one, now_ms) for one in described]}))
    else:
        print("\n\n".join(_as_text(one, now_ms) for one in described))
    return DONE


def find_transactional_id(
    cluster: ClusterClient, arguments: argparse.Namespace, transactional_id: str
) -> TransactionDescription:
    """The transactional id; SparklogError with a similar one if it does not exist."""
    admin = TransactionAdmin(cluster)
    with patience(f"asking for transactional id {transactional_id!r}"):
        described = admin.describe(transactional_id)
        if described is None:
            known = [listing.transactional_id for listing in admin.list_transactions()]
            raise SparklogError(_no_such_id(transactional_id, known, cluster_words(arguments)))
        return described


def _ids(arguments: argparse.Namespace) -> list[str]:
    return list(dict.fromkeys(arguments.transactional_ids))


def _no_such_id(transactional_id: str, known: list[str], cluster: str) -> str:
    see = f"; `sparklog transactions list {cluster}` shows those there are"
    return f"there is no transactional id {transactional_id!r}{did_you_mean(transactional_id, known) or see}"


def _as_text(one: TransactionDescription, now_ms: int) -> str:
    node = one.coordinator
    what = "atomic write" if one.is_write else "transactional id"
    title = (
        f"{what} {one.transactional_id}: {one.transaction_state}, producer {one.producer_id} "
        f"in epoch {one.producer_epoch}, coordinator {node.id} ({host_port(node.host, node.port)})"
    )
    owner = owner_of(one.transactional_id, one.producer_id)
    if owner is not None:
        title += f"\nof {owner}"
    timeout = f"its transactions may take {one.timeout_ms} ms"
    if one.is_write:
        timeout = f"it is aborted after {one.timeout_ms} ms without a sign of life"
    if one.transaction_state in NO_TRANSACTION:
        return f"{title}\nno open transaction; {timeout}"
    since = f"open since {moment_of(one.start_ms)}, for {age_of(one.start_ms, now_ms)}; {timeout}"
    partitions = render_table(["TOPIC", "PARTITION"], [list(where) for where in one.partitions])
    return "\n".join([title, since, partitions])


def _as_json(one: TransactionDescription, now_ms: int) -> dict[str, Any]:
    """Field names as in DescribeTransactions."""
    is_open = one.transaction_state not in NO_TRANSACTION
    topics: dict[str, list[int]] = {}
    for topic, partition in one.partitions:
        topics.setdefault(topic, []).append(partition)
    return {
        "transactional_id": one.transactional_id,
        "coordinator": {
            "id": one.coordinator.id,
            "host": one.coordinator.host,
            "port": one.coordinator.port,
        },
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "transaction_state": one.transaction_state,
        "transaction_timeout_ms": one.timeout_ms,
        "transaction_start_time_ms": one.start_ms,
        "age_ms": age_ms_of(one.start_ms, now_ms) if is_open else None,
        "app_id": app_id_of(one.transactional_id, one.producer_id),
        "topics": [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()],
    }
