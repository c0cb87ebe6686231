"""The calls of a member's loop, each on a connection of its own that another thread can end."""

import threading

from sparklog.client.calls.bootstrap import Endpoint
from sparklog.client.calls.connections import BrokerConnection
from sparklog.client.cluster import CONNECT_TIMEOUT_MS, ClusterClient
from sparklog.client.errors import ClientClosed
from sparklog.model.loops import Call, CallBroker


class LoopCalls:
    """``network.loop_threads.Ask`` for one loop. A JoinGroup may wait for minutes; ``close`` ends it."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster
        self._lock = threading.Lock()
        self._under_way: BrokerConnection | None = None
        self._is_closed = False

    def __call__(self, call: Call) -> object:
        """The response; OSError or SparklogError if there is none."""
        if not isinstance(call, CallBroker):
            raise AssertionError(f"a member of a group calls brokers only, not {call}")
        endpoint = Endpoint(call.node.host, call.node.port)
        connection = self._cluster.borrow(endpoint, self._cluster.deadline(CONNECT_TIMEOUT_MS))
        try:
            with self._lock:
                if self._is_closed:
                    raise ClientClosed("the member leaves its group")
                self._under_way = connection
            response: object = connection.call(call.message, timeout_ms=call.timeout_ms)
        except BaseException:
            self._cluster.discard(connection)
            raise
        finally:
            self._under_way = None
        self._cluster.give_back(endpoint, connection)
        return response

    def close(self) -> None:
        """End the call that is under way; later calls are refused. From any thread."""
        with self._lock:
            self._is_closed = True
            connection = self._under_way
        if connection is not None:
            connection.close()
