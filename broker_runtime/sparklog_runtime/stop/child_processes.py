"""Child processes: bound to their parent's life, found again, and ended without a trace.

A cluster on one machine is a tree: this process, Spark's JVM and ZooKeeper's below it, PySpark's daemon
below the JVM, the brokers below the daemon. A tree falls apart when an inner process is killed, and its
leaves live on under another parent. So every process of a run carries the run's name in its environment,
where ``processes_of_run`` finds it wherever it hangs; and ``adopt_orphans`` makes this process the new
parent of what falls off, so that it can be waited for.

Three calls are Linux's own (prctl, /proc); elsewhere they do nothing, and pids known from the control
channel are all that a stop can end.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from sparklog.cli.served_processes import is_alive as is_alive

RUN_VARIABLE: Final = "SPARKLOG_RUN"
"""Environment variable that every process of one run inherits."""

ROOT_VARIABLE: Final = "SPARKLOG_ROOT"
"""Names the root directory: the holder of its lock finds the processes that a killed run left."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_POLL_S: Final = 0.02


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}, {value}): {os.strerror(number)}")


def die_with_parent(signal_number: int) -> None:
    """Ask the kernel for a signal when the parent *thread* ends; 0 takes the wish back.

    A parent that ended just before the call sends nothing: compare ``os.getppid`` afterwards.
    """
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def reap_adopted() -> None:
    """Collect adopted children that have ended. Only for a process that starts no others meanwhile."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def processes_of_run(run: str) -> list[int]:
    """Living processes, other than this one, that carry ``run`` in their environment."""
    return _processes_with(RUN_VARIABLE, run)


def processes_of_root(root: Path) -> list[int]:
    """The same for every run on this root directory."""
    return _processes_with(ROOT_VARIABLE, os.path.realpath(root))


def _processes_with(variable: str, value: str) -> list[int]:
    wanted = f"{variable}={value}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # ended meanwhile, or another user's
        if wanted in variables and pid != os.getpid() and is_alive(pid):
            found.append(pid)
    return found


def send(pid: int, signal_number: int) -> None:
    """Signal a process that may have ended meanwhile."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal_number)


def wait_gone(pids: Iterable[int], timeout_s: float) -> list[int]:
    """Wait until the processes have ended; returns those that have not."""
    deadline = time.monotonic() + timeout_s
    alive = [pid for pid in pids if is_alive(pid)]
    while alive and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        alive = [pid for pid in alive if is_alive(pid)]
    return alive


def sweep_run(run: str, grace_s: float) -> list[int]:
    """End every process of a run: wait for it, ask with SIGTERM, then SIGKILL. Returns those killed."""
    left = wait_gone(processes_of_run(run), grace_s)
    for pid in left:
        send(pid, signal.SIGTERM)
    wait_gone(left, grace_s)
    # Listed again, because a dying process may have forked.
    killed = processes_of_run(run)
    for pid in killed:
        send(pid, signal.SIGKILL)
    wait_gone(killed, grace_s)
    return killed
