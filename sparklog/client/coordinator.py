"""Calls to the coordinator of a group or a transactional id: found when needed, and again when it has moved.
Those of one ``ClusterClient`` tell each other where it is.

A coordinator moves with the leadership of its partition of an internal topic. The next one answers that it
loads until it has read that partition. Calls are repeated over both, until a deadline.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.calls.retry import Deadline
from sparklog.client.cluster import ClusterClient
from sparklog.client.errors import ClusterUnavailable
from sparklog.model.cluster_facts import Node
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId
from sparklog.wire.messages.discovery.find_coordinator import (
    GROUP_KEY,
    TRANSACTION_KEY,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

MOVED: Final = (ErrorCode.not_coordinator, ErrorCode.coordinator_not_available)
NOT_READY: Final = (*MOVED, ErrorCode.coordinator_load_in_progress)
"""Codes of a coordinator that has moved, or that does not answer yet."""

_KINDS: Final = {GROUP_KEY: "group", TRANSACTION_KEY: "transactional id"}


class Found(NamedTuple):
    """What a broker knows of a coordinator. ``node`` counts only without an error."""

    error: ErrorCode
    message: str
    node: Node


def search(key: str, key_type: int = GROUP_KEY) -> FindCoordinatorRequest:
    """The question, for any broker, which broker coordinates ``key``."""
    return FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])


def found_in(response: FindCoordinatorResponse) -> Found:
    """The answer to ``search``."""
    if len(response.coordinators) != 1:
        message = (
            f"an answer names {len(response.coordinators)} coordinators of one key: see that broker's log"
        )
        return Found(ErrorCode.unknown_server_error, message, Node(BrokerId(-1), "", -1))
    (found,) = response.coordinators
    node = Node(BrokerId(found.node_id), found.host, found.port)
    return Found(found.error_code, found.error_message or "", node)


class Coordinator:
    """The coordinator of ``key``, which is a group's id, or a transactional id; for one thread."""

    def __init__(self, cluster: ClusterClient, key: str, key_type: int = GROUP_KEY) -> None:
        self._cluster = cluster
        self.key = key
        self._key_type = key_type
        self._what = f"{_KINDS[key_type]} {key!r}"
        self._node: Node | None = None

    def find(self, deadline: Deadline | None = None) -> Node:
        """The broker that coordinates the key now; KafkaError if none is known until the deadline."""
        deadline = deadline or self._cluster.deadline()
        response: FindCoordinatorResponse = self._cluster.call_any(
            search(self.key, self._key_type),
            lambda answer: found_in(answer).error,
            timeout_ms=deadline.remaining_ms,
        )
        found = found_in(response)
        if found.error is not ErrorCode.none:
            said = found.message or "there is no coordinator"
            asked = f"that of {self._what} was asked for at {self._cluster.bootstrap_servers}"
            raise KafkaError(found.error, f"{said} ({asked})")
        self._node = found.node
        self._cluster.coordinators.found(self._key_type, self.key, found.node)
        return self._node

    def _forget(self, node: Node) -> None:
        self._node = None
        self._cluster.coordinators.moved(self._key_type, self.key, node)

    def call(
        self, message: Any, error_of: Callable[[Any], ErrorCode], *, timeout_ms: int | None = None
    ) -> Any:
        """The coordinator's answer: one without error, or with an error that repeating cannot mend.

        ``error_of`` finds the answer's error code. KafkaError or ClusterUnavailable if the coordinator cannot
        be reached, or says until the deadline that it is not ready.
        """
        deadline = self._cluster.deadline(timeout_ms)
        backoff = self._cluster.backoff(deadline)
        while True:
            known = self._node or self._cluster.coordinators.get(self._key_type, self.key)
            node = self._node = known or self.find(deadline)
            try:
                response = self._cluster.call_endpoint(Endpoint(node.host, node.port), message, deadline)
            except OSError as error:
                self._forget(node)
                backoff.pause(partial(self._unreachable, node, error, deadline))
                continue
            code = error_of(response)
            if not code.retriable:
                return response
            if code in MOVED:
                self._forget(node)
            backoff.pause(partial(KafkaError, code, f"{self._what} at broker {node.id}"))

    def _unreachable(self, node: Node, error: OSError, deadline: Deadline) -> ClusterUnavailable:
        return ClusterUnavailable(
            f"broker {node.id}, the coordinator of {self._what}, did not answer within "
            f"{deadline.timeout_ms} ms: {error}"
        )


def ask_when_ready(
    cluster: ClusterClient, broker: Node, message: Any, error_of: Callable[[Any], ErrorCode], what: str
) -> Any:
    """The answer of one broker about all that it coordinates; KafkaError or OSError if it has none.

    Repeated while a coordinator of that broker is not ready, because the answer would be incomplete.
    """
    deadline = cluster.deadline()
    backoff = cluster.backoff(deadline)
    while True:
        response = cluster.call_endpoint(Endpoint(broker.host, broker.port), message, deadline)
        code = error_of(response)
        if code is ErrorCode.none:
            return response
        refusal = partial(KafkaError, code, f"broker {broker.id} cannot list its {what}")
        if code not in NOT_READY:
            raise refusal()
        backoff.pause(refusal)
