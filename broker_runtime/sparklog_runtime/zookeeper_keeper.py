"""The embedded ZooKeeper's life: started on a thread that stays, started again if it dies.

The thread stays because the kernel ties a child's life to the *thread* that started it (PR_SET_PDEATHSIG):
a ZooKeeper started by a thread that ends would end with it. It comes back on the same port with the same
data, so that sessions of brokers and controller survive when it was away for less than their timeout.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final

from sparklog.model.errors import SparklogError
from sparklog_runtime.layout import Layout
from sparklog_runtime.parts import Parts, ZooKeeperServer
from sparklog_runtime.processes import is_alive

log = logging.getLogger(__name__)

LOOK_INTERVAL_S: Final = 0.25
RESTART_PAUSE_S: Final = 1.0


class ZooKeeperKeeper:
    """``launch``, ``wait_started``, ``stop``; ``stop`` at any moment."""

    def __init__(self, parts: Parts, layout: Layout, on_change: Callable[[], None]) -> None:
        self._parts = parts
        self._layout = layout
        self._on_change = on_change
        self._leave = threading.Event()
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._server: ZooKeeperServer | None = None
        self._thread = threading.Thread(target=self._run, name="zookeeper-keeper", daemon=True)

    @property
    def pid(self) -> int | None:
        return None if self._server is None else self._server.pid

    @property
    def connect_string(self) -> str:
        assert self._server is not None, "not started"
        return self._server.connect_string

    def launch(self) -> None:
        """Begin to start it and return at once."""
        self._thread.start()

    def wait_started(self, timeout_s: float) -> bool:
        """Whether it answers by now; raises if it cannot start."""
        if not self._started.wait(timeout_s):
            return False
        if self._failure is not None:
            raise SparklogError(f"the embedded ZooKeeper did not start: {self._failure}") from self._failure
        return True

    def stop(self) -> None:
        self._leave.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._server = self._start(port=0)
        except BaseException as error:  # noqa: BLE001 (raised again by wait_started)
            self._failure = error
            return
        finally:
            self._started.set()
        while not self._leave.wait(LOOK_INTERVAL_S):
            pid = self._server.pid
            if pid is not None and is_alive(pid):
                continue
            log.error("ZooKeeper, process %s, has died; it is started again", pid)
            self._restart(self._server)
        self._server.stop()

    def _start(self, port: int) -> ZooKeeperServer:
        server = self._parts.zookeeper_server(self._layout.zookeeper, port, self._layout.logs)
        server.start()
        return server

    def _restart(self, dead: ZooKeeperServer) -> None:
        port = int(dead.connect_string.partition("/")[0].rpartition(":")[2])
        dead.stop()
        try:
            self._server = self._start(port)
        except (SparklogError, OSError) as error:
            log.error("ZooKeeper did not start again on port %d: %s", port, error)
            self._leave.wait(RESTART_PAUSE_S)
        self._on_change()
