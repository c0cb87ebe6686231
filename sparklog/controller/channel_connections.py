"""The connections of a controller's channels: one for each channel, which end with it.

    channel (lane 4) to broker 2, epoch 17    closed      --> refuses calls, has no connection
    channel (lane 5) to broker 2, epoch 23    open        --> connection to broker 2

A closed channel may be about to make a call. That call is refused: no thread would close its connection, and
a connection that it shared with the next channel would end that one's call.
"""

import threading
from typing import Any, Final

from sparklog.model.cluster_facts import Node
from sparklog.model.ids import BrokerId
from sparklog.model.loops import Call, CallBroker
from sparklog.network.dialing.connector import IN_THE_CLEAR, Connector
from sparklog.network.dialing.peer_connections import PeerConnections

CONNECT_TIMEOUT_MS: Final = 1_000
"""Longest wait for a broker's host to accept a connection; then the sender tries again."""


PROBE_MS: Final = 100
"""Longest wait for a host that is asked whether it refuses a connection. Whoever asks has other work."""


class ChannelConnections:
    """For any thread."""

    def __init__(self, client_id: str, connector: Connector = IN_THE_CLEAR) -> None:
        self._client_id = client_id
        self._connector = connector
        self._lock = threading.Lock()
        self._lanes: dict[int, PeerConnections] = {}
        self._is_closed = False

    def ask(self, call: Call) -> Any:
        """Make a channel's call; raises OSError, also once its lane has ended, or SparklogError."""
        assert isinstance(call, CallBroker), call
        return self._lane(call.lane).call(call.node, call.message, timeout_ms=call.timeout_ms)

    def hang_up(self, _broker_id: BrokerId, lane: int) -> None:
        """End the calls of this lane: the one that is under way, and every later one."""
        self._lane(lane).close()

    def has_ended(self, node: Node, lane: int) -> bool:
        """Whether this broker has ended its connection of the lane, and takes no other."""
        return self._lane(lane).has_ended(node, PROBE_MS)

    def close(self) -> None:
        """End the calls of all lanes, and of those to come."""
        with self._lock:
            self._is_closed = True
            lanes = tuple(self._lanes.values())
        for connections in lanes:
            connections.close()

    def _lane(self, lane: int) -> PeerConnections:
        """Kept after its end, a few bytes for each channel: it says that the lane has ended."""
        with self._lock:
            connections = self._lanes.get(lane)
            if connections is None:
                connections = self._lanes[lane] = PeerConnections(
                    client_id=self._client_id,
                    connect_timeout_ms=CONNECT_TIMEOUT_MS,
                    connector=self._connector,
                )
                if self._is_closed:
                    connections.close()
            return connections
