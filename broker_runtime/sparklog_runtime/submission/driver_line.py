"""The line between ``sparklog submit`` and its driver, whose parent is Spark's JVM.

A Unix socket that carries no data: its end is the message. When the command closes it or dies, the driver
stops as on SIGTERM. When the driver ends, the command notices, even if the JVM lives on. The driver finds the
socket by an environment variable, which Spark passes on.
"""

import contextlib
import os
import shutil
import signal
import socket
import tempfile
import threading
from pathlib import Path
from typing import Final

LINE_VARIABLE: Final = "SPARKLOG_SUBMIT_LINE"


class DriverLine:
    """The command's end. ``hang_up`` and ``wait_ended`` at any moment, from any thread; then ``close``."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sparklog-"))  # only this user may enter it
        self._path = self._folder / "driver"
        self._lock = threading.Lock()
        self._driver: socket.socket | None = None
        self._is_wanted = True
        self._ended = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen(1)
        threading.Thread(target=self._serve, name="driver-line", daemon=True).start()

    @property
    def variables(self) -> dict[str, str]:
        """What the driver's environment must have."""
        return {LINE_VARIABLE: str(self._path)}

    @property
    def has_driver(self) -> bool:
        """Whether a driver has called by now."""
        with self._lock:
            return self._driver is not None

    def hang_up(self) -> None:
        """Ask the driver to stop, also one that calls only later."""
        with self._lock:
            self._is_wanted = False
            if self._driver is not None:
                _shut_down(self._driver, socket.SHUT_WR)

    def wait_ended(self, timeout_s: float) -> bool:
        """Wait until the driver that called has ended; True at once if none has called."""
        return not self.has_driver or self._ended.wait(timeout_s)

    def close(self) -> None:
        """Let go of the socket and remove its file."""
        self.hang_up()
        _shut_down(self._listener, socket.SHUT_RDWR)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self) -> None:
        try:
            driver, _ = self._listener.accept()
        except OSError:
            return  # closed before any driver called
        with self._lock:
            self._driver = driver
            if not self._is_wanted:
                _shut_down(driver, socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while driver.recv(1):
                pass
        self._ended.set()
        driver.close()


def _shut_down(end: socket.socket, how: int) -> None:
    with contextlib.suppress(OSError):  # the other side was faster
        end.shutdown(how)


def stop_with_submit() -> None:
    """In the driver: SIGTERM to ourselves when ``sparklog submit``, if it started us, hangs up."""
    path = os.environ.pop(LINE_VARIABLE, None)
    if path is None:
        return
    line = socket.socket(socket.AF_UNIX)
    with contextlib.suppress(OSError):  # the command has ended: the read below returns at once
        line.connect(path)

    def watch() -> None:
        with contextlib.suppress(OSError):
            while line.recv(1):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="submit-line", daemon=True).start()
