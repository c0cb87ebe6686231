"""What a start waits for, from the remnants of the run before to brokers that know their cluster; and the
internal topics, for which it does not wait.

When may a cluster be called ready?

The node ``/controller`` alone proves little. A controller that was killed leaves it standing until its
ZooKeeper session expires, and a broker that has just registered knows no topic until the controller's first
push reaches it. So the controller must answer, and every broker must name all of them.

A cluster has its internal topics from its start on, because they need as many brokers as replicas: the first
exactly-once write must not depend on every broker being there.
"""

import logging
import signal
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

from sparklog.model.cluster_facts import host_port
from sparklog.model.errors import SparklogError, WireError
from sparklog.model.settings.config import BrokerConfig
from sparklog_runtime.driver_servers.elected_controller import ElectedController
from sparklog_runtime.driver_servers.servers import Controller
from sparklog_runtime.start.reachable import is_listening, master_problem_now, zookeeper_problems
from sparklog_runtime.start.start_patience import Patience
from sparklog_runtime.stop.child_processes import is_alive, processes_of_root, send, wait_gone
from sparklog_runtime.supervision.supervisor import Supervisor

logger: Final = logging.getLogger(__name__)

ELECTION_TIMEOUT_S: Final = 60.0
"""Beside the session timeout that a killed controller's office may last."""

METADATA_TIMEOUT_S: Final = 30.0
REMNANTS_GRACE_S: Final = 15.0
"""Brokers without a driver stop by themselves, tidily; what takes longer is killed."""

ASK_TIMEOUT_MS: Final = 1_000
MASTER_TIMEOUT_S: Final = 10.0


def holds_office(elected: ElectedController, host: str, application: str) -> bool:
    """Whether the controller that ZooKeeper names is alive; ``host`` and ``application`` are our own.

    If both are equal, it is our predecessor: its process has ended, but another process may have its port.
    """
    if (elected.host, elected.application) == (host, application) and not is_alive(elected.pid):
        return False
    return is_listening(elected.host, elected.port)


def brokers_know(addresses: Iterable[tuple[str, int]], broker_ids: Collection[int]) -> bool:
    """Whether each of the brokers at ``addresses`` lists all of ``broker_ids``."""
    return all(set(broker_ids) <= _known_brokers(host, port) for host, port in addresses)


def _known_brokers(host: str, port: int) -> set[int]:
    # start time: imported while Spark starts
    from sparklog.wire.messages.discovery.metadata import MetadataRequest

    try:
        answer = _answer(host, port, MetadataRequest(topics=[]))
    except (OSError, WireError) as error:
        logger.info("%s does not answer a metadata request yet: %s", host_port(host, port), error)
        return set()
    return {int(broker.node_id) for broker in answer.brokers}


def _answer(host: str, port: int, request: Any) -> Any:
    # start time: as above
    from sparklog.network.dialing.connection import Connection

    connection = Connection.open(host, port, client_id="sparklog-start", timeout_ms=ASK_TIMEOUT_MS)
    try:
        return connection.call(request, timeout_ms=ASK_TIMEOUT_MS)
    finally:
        connection.close()


def have_internal_topics(host: str, port: int, config: BrokerConfig) -> None:
    """Have the broker create those internal topics for which there are brokers enough. Waits for none.

    Failing that, the first client that needs one has it created.
    """
    # start time: as above
    from sparklog.wire.messages.discovery.find_coordinator import (
        GROUP_KEY,
        TRANSACTION_KEY,
        FindCoordinatorRequest,
    )

    brokers = len(_known_brokers(host, port))
    factors = {
        TRANSACTION_KEY: "transaction.state.log.replication.factor",
        GROUP_KEY: "offsets.topic.replication.factor",
    }
    for key_type, factor in factors.items():
        if config.get_int(factor) > brokers:
            logger.info("%d brokers are less than %s=%d", brokers, factor, config.get_int(factor))
            continue
        try:
            _answer(host, port, FindCoordinatorRequest(key_type=key_type, coordinator_keys=["start"]))
        except (OSError, WireError) as error:
            logger.info("%s does not answer for a coordinator: %s", host_port(host, port), error)


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


def await_zookeeper(connect_string: str, timeout_s: float, patience: Patience) -> None:
    """Refuse a ZooKeeper that does not serve before Spark is started and writes logs."""
    problems: list[str] = []

    def serves() -> bool:
        problems[:] = zookeeper_problems(connect_string)
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
    controller: Controller, supervisor: Supervisor, broker_ids: Collection[int], patience: Patience
) -> None:
    """Wait until brokers have the cluster's metadata, which the controller sends after they register."""

    def are_informed() -> bool:
        refuse_broken(controller, controller.elected())
        return brokers_know([(broker.host, broker.port) for broker in supervisor.processes()], broker_ids)

    patience.wait_until(
        are_informed,
        lambda: "the brokers to receive metadata from the controller",
        METADATA_TIMEOUT_S,
        lambda: f"the brokers received no metadata from the controller within {METADATA_TIMEOUT_S:.0f} s",
    )
