"""One client per cluster, credentials and process, shared by all tasks that Spark runs in that process.

Spark's Python workers outlive their tasks, so that the next micro-batch finds open connections. Workers are
forked, and a connection must not be used on both sides of a fork: the child drops the inherited client
without closing it, and connects by itself.
"""

import logging
import os
import threading
from typing import Final

from sparklog.client.cluster import ClusterClient
from sparklog.client.security.connecting import connector_of_many_hosts
from sparklog_datasource.options.option_parsing import ConnectionOptions

_clients: Final[dict[ConnectionOptions, ClusterClient]] = {}
_inherited: Final[list[ClusterClient]] = []
"""Kept from being collected: closing them would end the parent's connections."""
_lock = threading.Lock()
logger: Final = logging.getLogger(__name__)


def cluster_client(connection: ConnectionOptions) -> ClusterClient:
    """The process's client for this cluster; the caller must not close it."""
    with _lock:
        client = _clients.get(connection)
        if client is None or client.is_closed:
            client = _clients[connection] = ClusterClient(
                connection.bootstrap_servers,
                client_id=connection.client_id,
                request_timeout_ms=connection.request_timeout_ms,
                retry_timeout_ms=connection.retry_timeout_ms,
                auto_create_topics=connection.auto_create_topics,
                client_rack=connection.client_rack,
                connector=connector_of_many_hosts(dict(connection.security)),
                tell=_warn,
            )
        return client


def _warn(line: str) -> None:
    logger.warning("%s", line)


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    _inherited.extend(_clients.values())
    _clients.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
