"""What a start waits for, from the remnants of the run before to brokers that know their cluster.

When may a cluster be called ready?

The node ``/controller`` alone proves little. A controller that was killed leaves it standing until its
ZooKeeper session expires, and a broker that has just registered knows no topic until the controller's first
push reaches it. So the controller must answer, and every broker must name all of them.
"""

import signal
import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sparklog.model.cluster_facts import host_port
from sparklog.model.errors import SparklogError
from sparklog_runtime.driver_servers.elected_controller import ElectedController
from sparklog_runtime.driver_servers.servers import Controller
from sparklog_runtime.start.asked_brokers import AskedBrokers
from sparklog_runtime.start.reachable import is_listening, master_problem_now, zookeeper_problems
from sparklog_runtime.start.start_patience import Patience
from sparklog_runtime.stop.child_processes import is_alive, processes_of_root, send, wait_gone
from sparklog_runtime.supervision.supervisor import Supervisor

if TYPE_CHECKING:
    from sparklog.network.tls.sides import TlsClient

ELECTION_TIMEOUT_S: Final = 60.0
"""Beside the session timeout that a killed controller's office may last."""

METADATA_TIMEOUT_S: Final = 30.0
REMNANTS_GRACE_S: Final = 15.0
"""Brokers without a driver stop by themselves, tidily; what takes longer is killed."""

MASTER_TIMEOUT_S: Final = 10.0


def holds_office(elected: ElectedController, host: str, application: str) -> bool:
    """Whether the controller that ZooKeeper names is alive; ``host`` and ``application`` are our own.

    If both are equal, it is our predecessor: its process has ended, but another process may have its port.
    """
    if (elected.host, elected.application) == (host, application) and not is_alive(elected.pid):
        return False
    return is_listening(elected.host, elected.port)


def await_remnants(root: Path, patience: Patience) -> None:
    """Wait for the processes of a killed run: its brokers hold directories and ports until they have stopped.

    The caller holds the root's lock, so every process with the root's name belongs to a run that has ended.
    """
    left = processes_of_root(root)
    if not left:
        return
    for pid in left:
        send(pid, signal.SIGCONT)  # what is paused cannot stop
    deadline = time.monotonic() + REMNANTS_GRACE_S

    def are_gone(timeout_s: float) -> bool:
        if time.monotonic() > deadline:
            for pid in left:
                send(pid, signal.SIGKILL)
        if not wait_gone(left, timeout_s):
            left[:] = processes_of_root(root)  # one may have forked in its last moment
        return not left

    patience.wait(are_gone, lambda: f"processes of the run before to end: {', '.join(map(str, left))}")


def await_zookeeper(
    connect_string: str, timeout_s: float, patience: Patience, tls: "TlsClient | None" = None
) -> None:
    """Refuse a ZooKeeper that does not serve before Spark is started and writes logs."""
    problems: list[str] = []

    def serves() -> bool:
        problems[:] = zookeeper_problems(connect_string, tls)
        return not problems

    patience.wait_until(
        serves,
        lambda: f"ZooKeeper at {connect_string}",
        timeout_s,
        lambda: (
            f"no ZooKeeper answers at {connect_string} for {timeout_s:g} s ({'; '.join(problems)}): check "
            "that it runs there and that the address is right, or leave --zookeeper out to have one started"
        ),
    )


def await_master(master: str, patience: Patience) -> None:
    """Refuse a master that does not answer: Spark would try for a minute, and end with a long stack trace."""
    patience.wait_until(
        lambda: master_problem_now(master) is None,
        lambda: f"a Spark master at {master}",
        MASTER_TIMEOUT_S,
        lambda: master_problem_now(master) or f"no Spark master answers at {master}",
    )


def await_election(
    controller: Controller, host: str, application: str, session_s: float, patience: Patience
) -> None:
    """Wait for a controller, ours or another's; ``host`` and ``application`` are our own."""
    seen: ElectedController | None = None

    def is_elected() -> bool:
        nonlocal seen
        seen = controller.elected()
        refuse_broken(controller, seen)
        return controller.is_active or (seen is not None and holds_office(seen, host, application))

    def what() -> str:
        if seen is None:
            return "a controller to be elected"
        return (
            "the old controller's ZooKeeper session to end: "
            f"process {seen.pid} at {host_port(seen.host, seen.port)} does not answer"
        )

    timeout_s = ELECTION_TIMEOUT_S + session_s
    patience.wait_until(
        is_elected, what, timeout_s, lambda: f"no controller was elected within {timeout_s:.0f} s"
    )


def refuse_broken(controller: Controller, elected: ElectedController | None) -> None:
    """SparklogError with the reason, if our controller cannot serve and no other does."""
    if controller.failure is not None and elected is None:
        raise SparklogError(f"the controller cannot take charge of the cluster: {controller.failure}")


def await_metadata(
    controller: Controller,
    supervisor: Supervisor,
    asked: AskedBrokers,
    broker_ids: Collection[int],
    patience: Patience,
) -> None:
    """Wait until brokers have the cluster's metadata, which the controller sends after they register."""

    def are_informed() -> bool:
        refuse_broken(controller, controller.elected())
        return asked.know(supervisor.processes(), broker_ids)

    patience.wait_until(
        are_informed,
        lambda: "the brokers to receive metadata from the controller",
        METADATA_TIMEOUT_S,
        lambda: f"the brokers received no metadata from the controller within {METADATA_TIMEOUT_S:.0f} s",
    )
