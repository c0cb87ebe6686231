"""Processes of a benchmark: ports, children that end with it, and what they take in memory.

Every child carries ``SPARKLOG_BENCH=<token>`` in its environment, and so do its own children wherever they
hang; ``sweep`` ends what is left of them.
"""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TOKEN: Final = secrets.token_hex(8)
VARIABLE: Final = "SPARKLOG_BENCH"
CACHE: Final = Path(
    os.environ.get("SPARKLOG_BENCH_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparklog-bench"
)


def launch(command: Sequence[str], log: Path, **options: object) -> subprocess.Popen[str]:
    """A child in a session of its own, as Ctrl-C is for the benchmark alone; its output goes to ``log``."""
    with log.open("ab") as output:
        settings = {"stdout": output, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL, **options}
        return subprocess.Popen(
            list(command), text=True, start_new_session=True, env={**os.environ, VARIABLE: TOKEN}, **settings
        )


def children() -> list[int]:
    """Living processes that this benchmark started, directly or not."""
    wanted = f"{VARIABLE}={TOKEN}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def sweep() -> None:
    """End what is left of this benchmark's children."""
    for pid in children():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def end(process: subprocess.Popen[str], timeout_s: float = 30.0) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_ports(count: int) -> int:
    """The first of ``count`` neighbouring ports on 127.0.0.1 that are free now."""
    while True:
        with contextlib.ExitStack() as held, contextlib.suppress(OSError, OverflowError):
            first = held.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            for offset in range(1, count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port + offset))
            return port


def wait_until(is_so: Callable[[], bool], timeout_s: float, what: str, step_s: float = 0.02) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(step_s)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident megabytes: RSS counts pages shared with others in full, PSS by their share."""

    rss_mb: float
    pss_mb: float


def memory_of(pids: Iterable[int]) -> Memory:
    """Memory of some processes together; those that have ended count nothing."""
    kib = {"Rss": 0, "Pss": 0}
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                name, _, rest = line.partition(":")
                if name in kib:
                    kib[name] += int(rest.split()[0])
    return Memory(kib["Rss"] * 1024 / 1e6, kib["Pss"] * 1024 / 1e6)


TICKS: Final = os.sysconf("SC_CLK_TCK")


def cpu_of(pids: Iterable[int], *, with_ended: bool = True) -> float:
    """CPU seconds of some processes, and of their children that have ended."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            ticks += sum(int(field) for field in _stat(pid)[11 : 15 if with_ended else 13])
    return ticks / TICKS


def descendants(pid: int) -> dict[int, str]:
    """The process and all below it, with the names of their programs."""
    parents: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            one = int(entry.name)
            parents.setdefault(int(_stat(one)[1]), []).append(one)
            names[one] = (entry / "comm").read_text().strip()
    found, left = {}, [pid]
    while left:
        one = left.pop()
        found[one] = names.get(one, "")
        left += parents.get(one, [])
    return found


def _stat(pid: int) -> list[str]:
    """The fields of ``/proc/PID/stat`` behind the program's name, which may have blanks in it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
