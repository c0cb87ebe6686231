"""``spark-submit`` in the foreground: its output sorted, its driver stopped on a signal, no process left.

    sparklog submit  ->  spark-submit's JVM  ->  the driver, in Python

The JVM has a session of its own, so that neither Ctrl-C nor a terminal that closes reaches it: its end would
take Spark away from the driver before brokers have stopped. A signal reaches this process, and it asks the
driver to stop (``driver_line``). The driver stops brokers and controller in their order, then ends, then the
JVM does.

The JVM's standard output carries the driver's lines. Ours begin with ``sparklog``; everything else, and
the JVM's standard error, goes to a file under the root directory.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from types import FrameType
from typing import IO, Final

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog_runtime.life.foreground import STOP_DEADLINE_S
from sparklog_runtime.start.cluster_folders import Layout
from sparklog_runtime.stop.jvm_end import jvm_end_in_words, output_since
from sparklog_runtime.stop.process_end import end_in_words
from sparklog_runtime.submission.driver_line import DriverLine
from sparklog_runtime.submission.spark_command import SparkCommand
from sparklog_runtime.voice import repeat, say

DRIVER_STOP_S: Final = STOP_DEADLINE_S + 15.0
"""The driver gives up by itself after ``STOP_DEADLINE_S``; it is killed only after that."""

LATE_DRIVER_S: Final = 5.0
"""How long a driver that has not connected yet may take to connect and to end."""

LAST_LINES_S: Final = 5.0
"""How long the driver's last lines may take on their way through the pipe."""

STOPPED: Final = (DONE, 128 + signal.SIGTERM, -signal.SIGTERM)
"""Exit statuses of a ``spark-submit`` that was asked to stop: from its driver, or before it had a driver."""

_POLL_S: Final = 0.1


class DriverProcess:
    """One run of a ``SparkCommand``. ``run`` once, on the main thread, as signals arrive there."""

    def __init__(self, command: SparkCommand, layout: Layout) -> None:
        self._command = command
        self._layout = layout
        self._line = DriverLine()
        self._signals: list[int] = []
        self._has_spoken = False
        """Whether the driver has written a line of ours: then it has said why it failed."""
        self._output_start = 0
        """How long the file of output was before this run."""

    def run(self) -> int:
        """Start, wait for the end, and stop on a signal; returns the exit status."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self._layout.logs.mkdir(parents=True, exist_ok=True)
        with self._layout.spark_output.open("ab") as output:
            self._output_start = output.tell()
            jvm = self._start(output)
            relay = threading.Thread(target=self._relay, args=(jvm.stdout, output), name="relay", daemon=True)
            relay.start()
            try:
                self._wait(jvm)
            finally:
                self._line.close()
            relay.join(LAST_LINES_S)
        return self._status(jvm.returncode)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)

    def _start(self, output: IO[bytes]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self._command.arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            env={**os.environ, **self._command.environment, **self._line.variables},
            start_new_session=True,
        )

    def _relay(self, lines: Iterable[bytes], output: IO[bytes]) -> None:
        """Sort what the driver writes, until it and the JVM have closed their ends."""
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\n")
            if repeat(text):
                self._has_spoken = True
            else:
                with contextlib.suppress(OSError):  # a full disk must not hold up the driver
                    output.write(line)
                    output.flush()

    def _wait(self, jvm: "subprocess.Popen[bytes]") -> None:
        """Until JVM and driver have ended; from the first signal on with a deadline."""
        while not self._signals and jvm.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                jvm.wait(_POLL_S)
        if self._signals:
            self._stop(jvm)
        if not self._line.wait_ended(DRIVER_STOP_S):
            self._kill(jvm)
        jvm.wait()

    def _stop(self, jvm: "subprocess.Popen[bytes]") -> None:
        self._line.hang_up()
        has_driver = self._line.has_driver  # which will say that it stops
        if not has_driver:
            say("stopping")
            jvm.terminate()  # it has started no driver yet, or one that will find the line closed
        deadline = time.monotonic() + (DRIVER_STOP_S if has_driver else LATE_DRIVER_S)
        while jvm.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                jvm.wait(_POLL_S)
        if jvm.poll() is None:
            self._kill(jvm)

    def _kill(self, jvm: "subprocess.Popen[bytes]") -> None:
        say("the driver did not stop in time; it is killed, and brokers end with their executors")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(jvm.pid, signal.SIGKILL)

    def _status(self, status: int) -> int:
        if status == DONE or (self._signals and status in STOPPED):
            return DONE
        if status == WRONG_USAGE and self._has_spoken:
            return WRONG_USAGE
        if not self._has_spoken:
            output = output_since(self._layout.spark_output, self._output_start)
            say(jvm_end_in_words("spark-submit", status, output, ()))
        elif status != FAILED:
            say(f"spark-submit {end_in_words(status)}")
        if self._layout.spark_log.exists():
            say(f"Spark's log is {self._layout.spark_log}")
        say(f"what Spark wrote beside its log is in {self._layout.spark_output}")
        return FAILED
