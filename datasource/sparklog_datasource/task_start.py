"""What a task does for its own speed as it begins, before it reads or writes.

Spark sends a task to its Python worker in two pieces, the function and then the input. Spark leaves Nagle's
algorithm on, so the JVM's kernel keeps the second piece back until the first is acknowledged. The worker's
kernel delays that by 40 ms, because it waits for an answer to send along. The reader or writer is unpickled
between the two pieces, and acknowledges then. Where Spark uses Unix sockets
(``spark.python.unix.domain.socket.enabled``), or the kernel is not Linux, there is nothing to do.

A worker runs a full garbage collection after each task, which takes some 40 ms of a core to look at modules
that never go away. The first task of a worker exempts from that what is there by then.
"""

import contextlib
import gc
import ipaddress
import os
import socket
import stat
from pathlib import Path
from typing import Any, Final

QUICK_ACK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
"""Linux alone has it."""

OPEN_FILES: Final = Path("/proc/self/fd")
_is_exempt = False
"""Kept here, because Python counts exempt objects one by one, a millisecond for a worker's."""


class StartsTasks:
    """Base of what Spark pickles to tasks."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        begin_task()


def begin_task() -> None:
    """In the worker, between the task's function and its input."""
    global _is_exempt
    # With a default time-out, which a user's code may have set, a second handle would make Spark's not block.
    if QUICK_ACK is not None and socket.getdefaulttimeout() is None:
        with contextlib.suppress(OSError):  # a container without /proc: the task begins later, no worse
            for name in os.listdir(OPEN_FILES):
                _acknowledge(int(name), QUICK_ACK)
    if not _is_exempt:
        _is_exempt = True
        gc.freeze()


def _acknowledge(file_number: int, quick_ack: int) -> None:
    """Acknowledge what a connection to this machine received, if the file is one."""
    with contextlib.suppress(OSError):  # closed meanwhile, or not connected: then nothing waits for us
        if not stat.S_ISSOCK(os.fstat(file_number).st_mode):
            return
        with socket.socket(fileno=os.dup(file_number)) as connection:
            if connection.family in (socket.AF_INET, socket.AF_INET6) and _is_local(connection):
                connection.setsockopt(socket.IPPROTO_TCP, quick_ack, 1)


def _is_local(connection: socket.socket) -> bool:
    return ipaddress.ip_address(connection.getpeername()[0]).is_loopback
