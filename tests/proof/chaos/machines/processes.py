"""Processes of a run: started with a mark in their environment, kept alive, and found again by that mark.

A run kills and pauses what it has started, and what that has started in turn; some of it survives its
parents. So everything carries ``SPARKLOG_CHAOS=PID:FOLDER`` of the run, and the end of a run ends whatever
still has it, as does the beginning of the next one where a run was killed itself.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

MARK = "SPARKLOG_CHAOS"
RELAUNCH_PAUSE_S = 0.5
_POLL_S = 0.1


def mark_of(folder: Path) -> str:
    return f"{os.getpid()}:{folder}"


class Kept:
    """A process that is started again whenever it ends, after a pause that a nemesis may set."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        on_relaunch: Callable[[str], None] = lambda name: None,
        pause_s: float = RELAUNCH_PAUSE_S,
    ) -> None:
        self.name = name
        self.log = folder / "logs" / f"{name}.log"
        self.relaunches = 0
        self.pause_s = pause_s
        self._command = list(command)
        self._environment = {**os.environ, **(environment or {}), MARK: mark_of(folder)}
        self._on_relaunch = on_relaunch
        self._may_run = threading.Event()
        self._may_run.set()
        self._leave = threading.Event()
        self.launched_at = time.time()
        """When the process that runs now was started, by the wall clock."""
        self._process = self._launch()
        self._keeper = threading.Thread(target=self._keep, name=f"keep-{name}", daemon=True)
        self._keeper.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def stop(self, timeout_s: float) -> bool:
        """Ask it to end, and wait; kill it if it does not. Whether it ended by itself."""
        self._leave.set()
        self._keeper.join()
        for number in (signal.SIGCONT, signal.SIGTERM):
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return False
        return True

    def let_go(self) -> None:
        """Neither start it again nor stop it."""
        self._leave.set()
        self._keeper.join()

    def hold(self) -> None:
        """Do not start it again when it ends, until ``release``."""
        self._may_run.clear()

    def release(self) -> None:
        self._may_run.set()

    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _launch(self) -> "subprocess.Popen[bytes]":
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )

    def _keep(self) -> None:
        while not self._leave.wait(_POLL_S):
            if self.is_alive() or self._leave.wait(self.pause_s) or not self._may_run.is_set():
                continue
            self._on_relaunch(
                f"{self.name} ended with status {self._process.returncode}; it is started again"
            )
            self.relaunches += 1
            self.launched_at = time.time()
            self._process = self._launch()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    """Whether it lives; what only waits for its parent to ask (a zombie of Unix) does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def send(pid: int, number: int) -> None:
    """Signal a process that may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_and_wait(pids: Sequence[int], timeout_s: float = 10.0) -> None:
    """SIGKILL, and wait until they are gone."""
    for pid in pids:
        send(pid, signal.SIGKILL)
    deadline = time.monotonic() + timeout_s
    while any(is_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.005)


def marked() -> dict[int, str]:
    """Living processes of any run, with the run's mark."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for variable in (entry / "environ").read_bytes().split(b"\0"):
                if variable.startswith(MARK.encode() + b"=") and is_alive(int(entry.name)):
                    found[int(entry.name)] = variable.partition(b"=")[2].decode(errors="replace")
    return {pid: mark for pid, mark in found.items() if pid != os.getpid()}


def sweep(folder: Path | None = None) -> list[int]:
    """End what is left of the run in ``folder``; without it, of runs whose own process is gone."""

    def left() -> list[int]:
        return [
            pid
            for pid, mark in marked().items()
            if (mark == mark_of(folder) if folder else not is_alive(int(mark.partition(":")[0])))
        ]

    ended = left()
    for _ in range(5):
        kill_and_wait(left())
        if not left():
            break
    return ended
