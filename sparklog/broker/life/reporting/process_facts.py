"""What the operating system says of this process; -1 where it does not (``/proc`` is Linux's)."""

import os
import resource
import socket
from typing import Final, NamedTuple

_MEMORY: Final = "/proc/self/statm"
_OPEN_FILES: Final = "/proc/self/fd"
_THREADS: Final = "/proc/self/task"
_RESIDENT: Final = 1
"""The place of resident pages in ``statm``."""


class ProcessFacts(NamedTuple):
    memory_bytes: int
    """Resident."""
    open_files: int
    threads: int


def process_facts() -> ProcessFacts:
    """As of now."""
    return ProcessFacts(_resident_bytes(), _entries(_OPEN_FILES), _entries(_THREADS))


def host_name() -> str:
    return socket.gethostname()


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or -1


def open_files_max() -> int:
    """The limit of descriptors; -1 where there is none."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return -1 if soft == resource.RLIM_INFINITY else soft


def _resident_bytes() -> int:
    try:
        with open(_MEMORY, "rb") as statm:
            return int(statm.read().split()[_RESIDENT]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return -1


def _entries(folder: str) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:
        return -1
