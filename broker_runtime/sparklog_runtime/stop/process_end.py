"""How another process ended, said in words: which signal, or which exit code.

The kernel reports an exit status to the parent only, and a broker's parent is PySpark's daemon, which does
not ask. Linux 6.15 and newer also report it to the holder of a *pidfd* (``PIDFD_GET_INFO``), a descriptor of
one process that stays valid when the process id is used again. On other systems the status is unknown.
"""

import fcntl
import os
import select
import signal
import struct
import sys
from typing import Final

_GET_INFO: Final = (3 << 30) | (64 << 16) | (0xFF << 8) | 11
"""The ioctl's number: read and write a ``struct pidfd_info`` of 64 bytes."""

_INFO_BYTES: Final = 64
_INFO_EXIT: Final = 1 << 3
_EXIT_CODE_OFFSET: Final = 60
WAIT_MS: Final = 500
"""A dying process closes its connections a moment before it ends."""


class ProcessWatch:
    """A process of this machine; ``status`` returns how it ended."""

    def __init__(self, pid: int) -> None:
        self._fd = -1
        if sys.platform == "linux":
            try:
                self._fd = os.pidfd_open(pid)
            except OSError:
                self._fd = -1  # it has ended already, or the kernel is older than 5.3

    def status(self, wait_ms: int = WAIT_MS) -> int | None:
        """As ``subprocess`` has it: an exit code, or a signal's number negated; None if unknown, or if the
        process has not ended within ``wait_ms``.
        """
        if self._fd < 0:
            return None
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        if not poller.poll(wait_ms):
            return None
        info = bytearray(_INFO_BYTES)
        struct.pack_into("=Q", info, 0, _INFO_EXIT)
        try:
            fcntl.ioctl(self._fd, _GET_INFO, info)
        except OSError:
            return None
        (mask,) = struct.unpack_from("=Q", info, 0)
        (wait_status,) = struct.unpack_from("=i", info, _EXIT_CODE_OFFSET)
        return os.waitstatus_to_exitcode(wait_status) if mask & _INFO_EXIT else None

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def end_in_words(status: int | None) -> str:
    """For a message: ``was killed by SIGKILL``."""
    if status is None:
        return "has died"
    return f"ended with {cause_of_end(status)}" if status >= 0 else f"was killed by {cause_of_end(status)}"


def cause_of_end(status: int | None) -> str:
    """``SIGKILL``, ``exit code 3``; empty if it is unknown."""
    if status is None:
        return ""
    if status >= 0:
        return f"exit code {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
