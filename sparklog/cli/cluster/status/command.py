"""``sparklog status``: which brokers live, and whether partitions and disks are well."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from sparklog.cli.cluster.status.low_disks import LowDisk, low_disks, render_low_disks
from sparklog.cli.command import DONE, Command
from sparklog.cli.connect import (
    add_cluster_arguments,
    add_json_argument,
    connect,
    read_cluster_file,
    wants_json,
)
from sparklog.cli.progress import patience, say
from sparklog.cli.served_processes import gone_processes, is_over
from sparklog.cli.table import render_table
from sparklog.client.metadata.cluster_metadata import ClusterMetadata, PartitionMetadata
from sparklog.client.possible_losses import PossibleLoss, possible_losses
from sparklog.model.cluster_facts import host_port

LOSSES_TIMEOUT_MS: Final = 5_000
"""How long leaders may take to say where records may be lost."""


@dataclass(slots=True)
class BrokerStatus:
    """A broker that is alive, or one that is only in ``cluster.json``."""

    broker_id: int
    host: str
    port: int
    alive: bool
    rack: str | None = None
    pid: int | None = None
    metrics_port: int | None = None
    leaders: int = 0
    replicas: int = 0
    in_sync: int = 0


@dataclass(slots=True)
class Health:
    """A summary of all partitions."""

    topics: int = 0
    partitions: int = 0
    under_replicated: int = 0
    leaderless: int = 0
    losses: list[PossibleLoss] = field(default_factory=list)
    """Possible losses of partitions that once had a leader which may have lacked acknowledged records."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_cluster_arguments(parser)
    add_json_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    root: Path | None = getattr(arguments, "root", None)
    if root is not None:
        _warn_of_gone_processes(root)
    with connect(arguments) as cluster, patience(f"asking {cluster.bootstrap_servers}"):
        seen = cluster.metadata()
        low = low_disks(cluster, sorted(seen.brokers))
        losses = possible_losses(cluster, seen, cluster.deadline(LOSSES_TIMEOUT_MS))
    local = read_cluster_file(root) if root is not None else {}
    brokers, health = _brokers(seen, local), _health(seen, losses)
    if wants_json(arguments):
        print(json.dumps(_as_json(seen, brokers, health, local, low)))
        return DONE
    print(f"cluster {seen.cluster_id} at {cluster.bootstrap_servers}")
    for controller in _entries(local, "controllers"):
        role = "controller" if controller["active"] else "standby controller"
        print(f"{role} at {host_port(controller['host'], controller['port'])}, pid {controller['pid']}")
    print()
    print(_broker_table(brokers))
    print()
    print(
        f"topics: {health.topics}, partitions: {health.partitions}, "
        f"under-replicated: {health.under_replicated}, without a leader: {health.leaderless}"
    )
    if health.losses:
        print(render_losses(health.losses))
    if low:
        print(render_low_disks(low))
    return DONE


def render_losses(losses: Sequence[PossibleLoss]) -> str:
    """A warning about elections that may have lost records."""
    named = ", ".join(map(str, losses))
    return f"acknowledged records may be lost, by elections without a proven log: {named}"


def _warn_of_gone_processes(root: Path) -> None:
    """Warn of ended processes before connecting. If all controllers are gone, ``connect`` reports that."""
    content = read_cluster_file(root)
    gone = gone_processes(content)
    if is_over(content, gone):
        return
    for process in gone:
        say(
            f"warning: process {process.pid} is gone, which served {process.role}; `sparklog start` replaces "
            f"it within seconds, else {root / 'logs'} shows why"
        )


def _brokers(seen: ClusterMetadata, local: Mapping[str, Any]) -> list[BrokerStatus]:
    brokers = {
        int(broker.id): BrokerStatus(broker.id, broker.host, broker.port, alive=True, rack=broker.rack)
        for broker in seen.brokers.values()
    }
    for entry in _entries(local, "brokers"):
        down = BrokerStatus(entry["id"], entry["host"], entry["port"], alive=False)
        known = brokers.setdefault(entry["id"], down)
        known.pid, known.metrics_port = entry["pid"], entry.get("metrics_port")
    for partition in _partitions(seen):
        for broker_id, broker in brokers.items():
            broker.leaders += partition.leader == broker_id
            broker.replicas += broker_id in partition.replicas
            broker.in_sync += broker_id in partition.isr
    return [brokers[broker_id] for broker_id in sorted(brokers)]


def _health(seen: ClusterMetadata, losses: list[PossibleLoss]) -> Health:
    partitions = _partitions(seen)
    return Health(
        topics=len(seen.topics),
        partitions=len(partitions),
        under_replicated=sum(len(p.isr) < len(p.replicas) for p in partitions),
        leaderless=sum(p.leader not in seen.brokers for p in partitions),
        losses=losses,
    )


def _partitions(seen: ClusterMetadata) -> list[PartitionMetadata]:
    return [partition for topic in seen.topics.values() for partition in topic.partitions.values()]


def _entries(local: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    entries = local.get(name, [])
    return entries if isinstance(entries, list) else []


def _broker_table(brokers: list[BrokerStatus]) -> str:
    has_pids = any(broker.pid is not None for broker in brokers)
    headers = ["BROKER", "ADDRESS", "STATE", "LEADERS", "REPLICAS", "IN SYNC"] + ["PID"] * has_pids
    rows = [
        [
            broker.broker_id,
            host_port(broker.host, broker.port),
            "alive" if broker.alive else "down",
            broker.leaders,
            broker.replicas,
            broker.in_sync,
            *([broker.pid] if has_pids else []),
        ]
        for broker in brokers
    ]
    return render_table(headers, rows, spare=("PID",))


def _as_json(
    seen: ClusterMetadata,
    brokers: list[BrokerStatus],
    health: Health,
    local: Mapping[str, Any],
    low: list[LowDisk],
) -> dict[str, Any]:
    return {
        "cluster_id": seen.cluster_id,
        "controller_id": seen.controller_id,
        "brokers": [asdict(broker) for broker in brokers],
        **({"controllers": _entries(local, "controllers")} if local else {}),
        "topic_count": health.topics,
        "partition_count": health.partitions,
        "under_replicated_partition_count": health.under_replicated,
        "leaderless_partition_count": health.leaderless,
        "lossy_partitions": {f"{one.topic}-{one.partition}": one.leader_epoch for one in health.losses},
        "losses": [asdict(loss) for loss in health.losses],
        "low_disks": [asdict(disk) for disk in low],
    }


COMMAND = Command(
    name="status",
    summary="which brokers live, and whether partitions and disks are well",
    add_arguments=add_arguments,
    run=run,
    examples=(
        "sparklog status --root /tmp/sparklog",
        "sparklog status --bootstrap-server 127.0.0.1:9092 --json",
    ),
)
