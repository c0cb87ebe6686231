"""A check whether the processes in ``cluster.json`` that are on this machine still run.

A cluster that is killed, or whose machine fails, does not remove its ``cluster.json``. A command would wait
for brokers that cannot answer, but a check of the processes detects this at once. A pid that another program
has meanwhile looks alive; then the command ends with a time-out.
"""

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

CONTROLLER: Final = "a controller"


@dataclass(frozen=True, slots=True)
class Served:
    """A process in ``cluster.json``, and its role."""

    role: str
    host: str
    pid: int

    def is_gone(self) -> bool:
        """Whether the process ended. False for a process on another machine, which cannot be checked."""
        return is_this_machine(self.host) and not is_alive(self.pid)


def served_processes(cluster_file: Mapping[str, Any]) -> list[Served]:
    """Controllers and brokers; entries without a host or a pid are skipped."""
    found = []
    for name, role in (("controllers", CONTROLLER), ("brokers", "broker {id}")):
        entries = cluster_file.get(name)
        for entry in entries if isinstance(entries, list) else []:
            pid, host = entry.get("pid"), entry.get("host")
            if isinstance(pid, int) and pid > 0 and isinstance(host, str):
                found.append(Served(role.format(id=entry.get("id")), host, pid))
    return found


def gone_processes(cluster_file: Mapping[str, Any]) -> list[Served]:
    return [process for process in served_processes(cluster_file) if process.is_gone()]


def is_over(cluster_file: Mapping[str, Any], gone: Sequence[Served]) -> bool:
    """Whether every controller is gone; then no process starts brokers again."""
    served = served_processes(cluster_file)
    keepers = [process for process in served if process.role == CONTROLLER] or served
    return bool(keepers) and all(process in gone for process in keepers)


def is_this_machine(host: str) -> bool:
    """Whether an address is this machine's own, tested by binding it."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM):
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
                return True
    except OSError:
        return False
    return False


def is_alive(pid: int) -> bool:
    """Whether a process runs. False for a process that ended but was not collected yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return sys.platform != "linux"
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
