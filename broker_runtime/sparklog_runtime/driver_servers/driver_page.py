"""The page of this driver: it listens at ``web.port``, and starts the page's process when that is wanted.

A driver that nobody looks at pays for a socket and a thread. The first connection waits in the socket's queue
until the process has inherited the socket and accepts it. When the process has ended, after ten minutes
without a request, the next connection starts another one. One that fails is started again, ever later.
"""

import contextlib
import logging
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from sparklog.model.cluster_facts import host_port
from sparklog.web.page_plan import PagePlan
from sparklog_runtime.stop.child_processes import RUN_VARIABLE

BACKLOG: Final = 128
PAUSE_S: Final = 1.0
PAUSE_MAX_S: Final = 60.0
STOP_TIMEOUT_S: Final = 5.0

MakePlan = Callable[[int], PagePlan]
"""The plan for a process that inherits this descriptor; what it says of the cluster is of now."""

logger: Final = logging.getLogger(__name__)


class DriverPage:
    """``start`` once, ``stop`` at any time; the port is taken from construction on."""

    def __init__(self, listening: socket.socket, run: str, log: Path, *, has_tls: bool) -> None:
        self._listening = listening
        self._scheme = "https" if has_tls else "http"
        self._run = run
        self._log = log
        self._make_plan: MakePlan | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._wakened, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="driver-page", daemon=True)

    @classmethod
    def open(cls, host: str, port: int, *, run: str, log: Path, has_tls: bool = False) -> Self:
        """OSError if the port is taken, or the host is not this one. ``log``: a file for what it prints."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, port))
            listening.listen(BACKLOG)
        except OSError:
            listening.close()
            raise
        return cls(listening, run, log, has_tls=has_tls)

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    @property
    def url(self) -> str:
        return f"{self._scheme}://{host_port(*self._listening.getsockname()[:2])}/"

    @property
    def pid(self) -> int | None:
        """The process that serves it now, if there is one."""
        process = self._process
        return None if process is None else process.pid

    def start(self, make_plan: MakePlan) -> None:
        self._make_plan = make_plan
        self._thread.start()

    def stop(self) -> None:
        """End the process and free the port."""
        self._stopping.set()
        self._waker.close()
        process = self._process
        if process is not None:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
        if self._thread.ident is not None:
            self._thread.join()
        self._listening.close()
        self._wakened.close()

    def _serve(self) -> None:
        pause_s = PAUSE_S
        while self._is_wanted():
            try:
                status = self._run_process()
            except OSError as error:
                logger.warning("the page's process does not start: %s", error)
                status = -1
            if status == 0:
                pause_s = PAUSE_S
            elif not self._stopping.is_set():
                logger.warning("the page's process ended with %d; see %s", status, self._log)
                self._stopping.wait(pause_s)
                pause_s = min(2 * pause_s, PAUSE_MAX_S)

    def _is_wanted(self) -> bool:
        """Wait for a connection; False once it is to stop."""
        if self._stopping.is_set():
            return False
        select.select([self._listening, self._wakened], [], [])
        return not self._stopping.is_set()

    def _run_process(self) -> int:
        """Start it, and wait for its end."""
        assert self._make_plan is not None
        descriptor = self._listening.fileno()
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "sparklog.web.page_process"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[descriptor],
                env={**os.environ, RUN_VARIABLE: self._run},
            )
        self._process = process
        if self._stopping.is_set():
            process.terminate()
        assert process.stdin is not None
        with process.stdin as pipe:  # open as long as we live
            with contextlib.suppress(BrokenPipeError):
                pipe.write(self._make_plan(descriptor).encode())
                pipe.flush()
            status = process.wait()
        self._process = None
        return status
