"""A cluster's status as text for people."""

from collections.abc import Sequence
from typing import Final

from sparklog.cli.cluster.status.cluster_status import SERVING, BrokerStatus, ClusterStatus, ControllerStatus
from sparklog.cli.cluster.status.low_disks import render_low_disks
from sparklog.cli.table import NOTHING, render_table
from sparklog.client.possible_losses import PossibleLoss
from sparklog.model.cluster_facts import host_port

OLD_MS: Final = 5_000
"""From this age on it is said."""
SPARE: Final = ("PID", "APPLICATION")


def render_status(status: ClusterStatus) -> str:
    lines = [f"cluster {status.cluster_id} at {status.servers}"]
    lines += [_controller_line(controller) for controller in status.controllers]
    if status.age_ms >= OLD_MS:
        lines.append(
            f"brokers and controllers are as of {status.age_ms // 1_000} s ago: no controller that reaches "
            "ZooKeeper has answered since"
        )
    lines += ["", _broker_table(status.brokers)]
    lines += [
        f"broker {broker.broker_id}, {broker.state}: {broker.reason}"
        for broker in status.brokers
        if broker.state != SERVING and broker.reason
    ]
    lines += [
        "",
        f"topics: {status.topics}, partitions: {status.partitions}, "
        f"under-replicated: {status.under_replicated}, without a leader: {status.leaderless}",
    ]
    if status.losses:
        lines.append(render_losses(status.losses))
    if status.low_disks:
        lines.append(render_low_disks(status.low_disks))
    return "\n".join(lines)


def render_losses(losses: Sequence[PossibleLoss]) -> str:
    """A warning about elections that may have lost records."""
    named = ", ".join(map(str, losses))
    return f"acknowledged records may be lost, by elections without a proven log: {named}"


def _controller_line(controller: ControllerStatus) -> str:
    role = "controller" if controller.active else "standby controller"
    parts = [f"{role} at {host_port(controller.host, controller.port)}"]
    if controller.pid is not None:
        parts.append(f"pid {controller.pid}")
    if controller.application:
        parts.append(f"application {controller.application}")
    return ", ".join(parts)


def _broker_table(brokers: Sequence[BrokerStatus]) -> str:
    has_pids = any(broker.pid is not None for broker in brokers)
    has_applications = any(broker.application for broker in brokers)
    headers = ["BROKER", "ADDRESS", "STATE", "LEADERS", "REPLICAS", "IN SYNC"]
    headers += ["APPLICATION"] * has_applications + ["PID"] * has_pids
    rows = [
        [
            broker.broker_id,
            _address(broker),
            broker.state,
            broker.leaders,
            broker.replicas,
            broker.in_sync,
            *([broker.application] if has_applications else []),
            *([broker.pid] if has_pids else []),
        ]
        for broker in brokers
    ]
    return render_table(headers, rows, spare=SPARE)


def _address(broker: BrokerStatus) -> str:
    if broker.host is None:
        return NOTHING
    return broker.host if broker.port < 0 else host_port(broker.host, broker.port)
