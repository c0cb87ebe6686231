"""Listening ports: found free before Spark starts, and kept for the brokers while they are down.

A broker keeps its port over relaunches. While it is down, nothing may take the port: not another server,
and not an outgoing connection to which the kernel hands some free port. So the driver binds each port
without listening on it. On Linux sockets that set SO_REUSEADDR may share a port as long as only one of
them listens, which will be the broker. Elsewhere the port is only looked at, and let go.
"""

import errno
import socket
import sys
from typing import Final

from sparklog.model.errors import SparklogError
from sparklog.model.listeners import PORT_MAX

_QUEUE_LENGTH: Final = 64
"""Connections that may wait until they are accepted."""


class PortInUse(SparklogError):  # noqa: N818 (it states a fact)
    """A port that a broker should listen on is taken."""


class PortReservation:
    """Ports that belong to the brokers of this application until ``release``."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def reserve(self, host: str, port: int, remedy: str = "choose another with --port") -> int:
        """Bind ``port`` on ``host``, or any free one for 0, and return it.

        Raises PortInUse, which names the port and ends with ``remedy``, if it is taken.
        """
        if not 0 <= port <= PORT_MAX:
            raise PortInUse(f"port {port} does not exist: the last one is {PORT_MAX}; choose a lower --port")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
        except OSError as error:
            bound.close()
            raise _port_error(error, host, port, remedy) from None
        self._sockets.append(bound)
        reserved = int(bound.getsockname()[1])
        if sys.platform != "linux":
            self.release()
        return reserved

    def release(self) -> None:
        for bound in self._sockets:
            bound.close()
        self._sockets.clear()


def listen(host: str, port: int, remedy: str) -> socket.socket:
    """A socket that listens on ``port`` of ``host``, 0 for any free one; PortInUse ends with ``remedy``."""
    try:
        return socket.create_server((host, port), backlog=_QUEUE_LENGTH)
    except OSError as error:
        raise _port_error(error, host, port, remedy) from None


def _port_error(error: OSError, host: str, port: int, remedy: str) -> Exception:
    """PortInUse with the port's address and the remedy; what is no matter of ports stays as it is."""
    why = {errno.EADDRINUSE: "is in use by another process", errno.EACCES: "needs privileges"}
    if error.errno not in why:
        return error
    return PortInUse(f"port {port} on {host} {why[error.errno]}; {remedy}")
