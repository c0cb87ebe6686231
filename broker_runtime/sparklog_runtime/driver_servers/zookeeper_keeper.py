"""The embedded ZooKeeper's life: started while other things start, and started again if it dies.

It restarts on the same port with the same data, so that the sessions of brokers and controller survive if
it was away for less than their timeout. Over restarts of the whole cluster it keeps its port where it can,
because another application may host more brokers of this cluster and know it by that port.
"""

import logging
import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sparklog.model.errors import SparklogError
from sparklog_runtime.driver_servers.servers import ZooKeeperServer
from sparklog_runtime.stop.process_end import end_in_words

logger: Final = logging.getLogger(__name__)

LOOK_INTERVAL_S: Final = 0.25
RESTART_PAUSE_S: Final = 1.0
ANY_PORT: Final = 0


class ZooKeeperKeeper:
    """``launch``, ``wait_started``, ``stop``; ``stop`` at any moment."""

    def __init__(
        self,
        make_server: Callable[[Path, int], ZooKeeperServer],
        data_dir: Path,
        on_change: Callable[[], None],
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``make_server`` takes the data directory and a port; ``on_change`` is called when another process
        serves, ``notice`` with a line for the user at each death and return.
        """
        self._make_server = make_server
        self._data_dir = data_dir
        self._on_change = on_change
        self._notice = notice
        self._buried: int | None = None
        """The last process whose death was reported."""
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
            server = self._make_server(self._data_dir, _previous_port(self._data_dir))
            server.start()
            self._server = server
        except BaseException as error:  # noqa: BLE001 (raised again by wait_started)
            self._failure = error
            return
        finally:
            self._started.set()
        pid = server.pid
        while not self._leave.wait(LOOK_INTERVAL_S):
            if server.pid is None:  # only now is its exit status known
                pid = self._restart(server, pid)
        server.stop()

    def _restart(self, server: ZooKeeperServer, dead: int | None) -> int | None:
        """Start it again; its new process, or the ``dead`` one if that failed."""
        if dead != self._buried:
            self._buried = dead
            logger.error("ZooKeeper on %s has died; it is started again", server.connect_string)
            self._notice(
                f"ZooKeeper (process {dead}) {end_in_words(server.exit_status)}; it is started again"
            )
        began = time.monotonic()
        try:
            server.start()
        except (SparklogError, OSError) as error:
            logger.error("ZooKeeper did not start again: %s", error)
            self._leave.wait(RESTART_PAUSE_S)
        else:
            self._notice(f"ZooKeeper is back as process {server.pid} after {time.monotonic() - began:.1f} s")
        self._on_change()
        return server.pid or dead


def _previous_port(data_dir: Path) -> int:
    """The port of the last start, if it is free; else any."""
    config = data_dir / "zoo.cfg"
    found = (
        re.search(r"^(?:clientPort|secureClientPort)=(\d+)$", config.read_text(), re.MULTILINE)
        if config.exists()
        else None
    )
    if found is None:
        return ANY_PORT
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(found[1])))
        except OSError:
            return ANY_PORT
    return int(found[1])
