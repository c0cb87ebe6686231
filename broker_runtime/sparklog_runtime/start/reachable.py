"""Checks, before a start launches anything, that ZooKeeper and the Spark master answer; the problem in words.

A ZooKeeper client cannot distinguish a server that is down from a server of an ensemble without a majority:
it waits for both alike. The ``srvr`` command, which ZooKeeper allows by default, distinguishes them.
"""

import socket
from contextlib import closing
from typing import TYPE_CHECKING, Final

from sparklog.zookeeper.tls_socket import secured

if TYPE_CHECKING:
    from sparklog.network.tls.sides import TlsClient

ZOOKEEPER_PORT: Final = 2181
ANSWER_BYTES_MAX: Final = 4_096
IF_TLS: Final = "if that is a port with TLS, set zookeeper.ssl.client.enable=true"
_TIMEOUT_S: Final = 1.0
_NOT_SERVING: Final = b"not currently serving requests"


def is_listening(host: str, port: int) -> bool:
    """Whether a server accepts connections at this address now."""
    try:
        with socket.create_connection((host, port), timeout=_TIMEOUT_S):
            return True
    except OSError:
        return False


def zookeeper_problems(connect_string: str, tls: "TlsClient | None" = None) -> list[str]:
    """Why none of these ZooKeeper servers can be used, one line a server; empty as soon as one serves."""
    problems = []
    for server in connect_string.partition("/")[0].split(","):
        problem = _server_problem(*address_of(server), tls)
        if problem is None:
            return []
        problems.append(f"{server.strip()} {problem}")
    return problems


def master_problem_now(master: str) -> str | None:
    """Why no standalone master can be reached at ``master``; None if one can, or for another kind."""
    if not master.startswith("spark://"):
        return None
    servers = master.removeprefix("spark://").split(",")
    if any(is_listening(*address_of(server)) for server in servers):
        return None
    return f"no Spark master answers at {master}: start it, or correct --master"


def _server_problem(host: str, port: int, tls: "TlsClient | None") -> str | None:
    try:
        with closing(_dialled(host, port, tls)) as server:
            server.sendall(b"srvr")
            answer = server.recv(ANSWER_BYTES_MAX)
    except TimeoutError:
        return "does not answer" if tls is not None else f"does not answer; {IF_TLS}"
    except OSError as error:
        return f"cannot be reached ({error.strerror or error})"
    return "does not serve: it has no majority of its ensemble" if _NOT_SERVING in answer else None


def _dialled(host: str, port: int, tls: "TlsClient | None") -> socket.socket:
    server = socket.create_connection((host, port), timeout=_TIMEOUT_S)
    return server if tls is None else secured(server, tls, host, port)


def address_of(server: str) -> tuple[str, int]:
    """Host and port of ``host:port``; the port is ZooKeeper's own where ``server`` has none."""
    host, colon, port = server.strip().rpartition(":")
    if not colon or not port.isdigit():
        return server.strip().strip("[]"), ZOOKEEPER_PORT
    return host.strip("[]"), int(port)
