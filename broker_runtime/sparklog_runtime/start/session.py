"""Spark on this machine: its JVM started as a quiet child, and a context in it that suits brokers.

``SparkContext`` would start the JVM by itself, but only after importing PySpark, with our own standard
output as its own, in our terminal's process group, and with no handle on it until it answers. Here the JVM
is launched first, and everything else happens while it starts; it writes to files under the root directory,
does not receive Ctrl-C, and can be ended at any moment, also half started. It ends by itself when this
process does, as it reads from a pipe of which we hold the other end.
"""

import importlib.util
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from sparklog.model.errors import SparklogError
from sparklog.zookeeper.java_environment import java_environment
from sparklog_runtime.settings.conf_files import spark_log_options
from sparklog_runtime.start.cluster_folders import Layout
from sparklog_runtime.stop.child_processes import ROOT_VARIABLE, RUN_VARIABLE
from sparklog_runtime.stop.jvm_end import jvm_end_in_words, output_since

logger: Final = logging.getLogger(__name__)

JVM_START_TIMEOUT_S: Final = 120.0
JVM_STOP_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.01

_LATE_COMPILER: Final = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Lets the JVM's optimising compiler begin ten times later than by default. While Spark starts it has a core
to itself, for code that never runs again: the start took 7.0 s of CPU time with it and 4.9 s so."""


def spark_home() -> Path:
    """Where Spark is, found without importing PySpark: SPARK_HOME, or the installed package itself."""
    given = os.environ.get("SPARK_HOME")
    if given:
        return Path(given)
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise SparklogError("PySpark is not installed in this Python; install it with: pip install pyspark")
    return Path(found.origin).parent


def spark_submit_program() -> Path:
    """Spark's ``spark-submit``; SparklogError if it does not exist."""
    home = spark_home()
    program = home / "bin" / "spark-submit"
    if not program.exists():
        raise SparklogError(f"no Spark in {home}: {program} does not exist; unset or correct SPARK_HOME")
    return program


def local_conf(layout: Layout, *, ui: bool) -> dict[str, str]:
    """Spark settings for brokers on this machine."""
    return {
        "spark.app.name": "sparklog",
        "spark.ui.enabled": "true" if ui else "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(layout.scratch),
        "spark.sql.warehouse.dir": str(layout.scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        # Data jobs share the slots that brokers leave; no job may block the next.
        "spark.scheduler.mode": "FAIR",
    }


class SparkHost:
    """Spark's JVM and the context in it. ``launch``, ``connect``, ``stop``; ``stop`` at any moment."""

    def __init__(self, layout: Layout, master: str, conf: Mapping[str, str], run: str) -> None:
        self._layout = layout
        self._conf = {**conf, "spark.master": master}
        self._run = run
        self._lock = threading.Lock()
        self._stopped = False
        self._jvm: subprocess.Popen[bytes] | None = None
        self._context: Any = None
        self._launched_at = 0.0
        self._connecting = threading.Lock()
        """Held while a context is being made."""
        self._info = layout.scratch / "gateway"
        """Where the JVM writes its port and secret; only this user can read it."""
        self._output_start = 0
        """How long the file of the JVM's output was before this one wrote to it."""

    @property
    def context(self) -> Any:
        return self._context

    def launch(self) -> None:
        """Start the JVM and return at once."""
        program = spark_submit_program()
        java_options = (
            f"{spark_log_options(self._layout.spark_log)} {_LATE_COMPILER} "
            + self._conf.get("spark.driver.extraJavaOptions", "")
        ).strip()
        conf = {**self._conf, "spark.driver.extraJavaOptions": java_options}
        command = [str(program)]
        for name, value in conf.items():
            command += ["--conf", f"{name}={value}"]
        with self._lock:
            if self._stopped:
                return
            self._launched_at = time.monotonic()
            self._jvm = self._start_jvm([*command, "pyspark-shell"], program.parents[1])

    def _start_jvm(self, command: list[str], home: Path) -> subprocess.Popen[bytes]:
        environment = {
            **java_environment(),
            "SPARK_HOME": str(home),
            "SPARK_CONNECT_MODE": "0",
            # spark-submit first runs a small JVM that only assembles the command of the real one.
            "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._info),
            # macOS ends a process that forks after it used certain libraries; PySpark's daemon forks workers.
            "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES",
            RUN_VARIABLE: self._run,
            ROOT_VARIABLE: os.path.realpath(self._layout.root),
        }
        with self._layout.spark_output.open("ab") as output:
            self._output_start = output.tell()
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    def connect(self) -> Any:
        """Wait for the JVM and make the context; returns the ``SparkContext``.

        Call from a thread that is not the main one, as PySpark would install a SIGINT handler there.
        """
        import pyspark  # while the JVM starts

        with self._connecting:
            return self._connect(pyspark)

    def _connect(self, pyspark: Any) -> Any:
        self._await_jvm()
        logger.info("start: Spark's JVM answers after %.2f s", time.monotonic() - self._launched_at)
        _refuse_second_context(pyspark)
        gateway = self._connect_gateway()
        conf = pyspark.SparkConf(loadDefaults=False)
        for name, value in self._conf.items():
            conf.set(name, value)
        context = pyspark.SparkContext(conf=conf, gateway=gateway)
        context.pythonExec = sys.executable
        with self._lock:
            self._context = context
        return context

    def _await_jvm(self) -> None:
        assert self._jvm is not None, "launch first"
        deadline = time.monotonic() + JVM_START_TIMEOUT_S
        while not self._info.exists():
            if self._stopped:
                raise SparklogError("stopped while Spark's JVM was starting")
            if self._jvm.poll() is not None:
                raise SparklogError(self._end_in_words(self._jvm.returncode))
            if time.monotonic() > deadline:
                raise SparklogError(f"Spark's JVM did not answer within {JVM_START_TIMEOUT_S:.0f} s")
            time.sleep(_POLL_S)

    def _end_in_words(self, status: int) -> str:
        layout = self._layout
        text = output_since(layout.spark_output, self._output_start)
        return jvm_end_in_words("Spark's JVM", status, text, (layout.spark_output, layout.spark_log))

    def _connect_gateway(self) -> Any:
        """PySpark's gateway to a JVM that runs already, as ``launch_gateway`` makes it."""
        from pyspark.java_gateway import launch_gateway
        from pyspark.serializers import UTF8Deserializer, read_int

        with self._info.open("rb") as info:
            port, secret = read_int(info), UTF8Deserializer().loads(info)
        with _environment({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
            return launch_gateway()

    def watch(self, on_exit: Callable[[str], None]) -> None:
        """Call ``on_exit`` with the reason when the JVM ends, unless by ``stop``."""
        jvm = self._jvm
        assert jvm is not None, "launch first"

        def wait() -> None:
            status = jvm.wait()
            if not self._stopped:
                on_exit(self._end_in_words(status))

        threading.Thread(target=wait, name="spark-jvm-watch", daemon=True).start()

    def stop(self) -> None:
        """End the context and the JVM, wherever in their start they are."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            jvm, context = self._jvm, self._context
        if context is not None and jvm is not None and jvm.poll() is None:
            stop_context(context)
        if jvm is not None:
            _end_jvm(jvm, politely=context is not None)
        with self._connecting:
            _forget_gateway()


def _refuse_second_context(pyspark: Any) -> None:
    if pyspark.SparkContext._active_spark_context is not None:
        raise SparklogError(
            "this process has a Spark context already, and there can only be one; "
            "stop it first, or run `sparklog start` in a process of its own"
        )


class _environment:  # noqa: N801 (reads as a verb)
    """Environment variables for the length of a block."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def __enter__(self) -> None:
        os.environ.update(self._variables)

    def __exit__(self, *_: object) -> None:
        for name in self._variables:
            os.environ.pop(name, None)


def stop_context(context: Any) -> None:
    """End the Spark context, whatever state its JVM is in."""
    try:
        context.stop()
    except Exception as error:  # noqa: BLE001 (the JVM may be dying; it is ended next in any case)
        logger.info("the Spark context did not stop by itself: %s", error)


def _end_jvm(jvm: subprocess.Popen[bytes], *, politely: bool) -> None:
    assert jvm.stdin is not None
    jvm.stdin.close()  # PySpark's gateway server exits when its input ends
    try:
        jvm.wait(JVM_STOP_TIMEOUT_S if politely else 0.2)
    except subprocess.TimeoutExpired:
        jvm.send_signal(signal.SIGTERM if politely else signal.SIGKILL)
        try:
            jvm.wait(JVM_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            jvm.kill()
            jvm.wait()


def _forget_gateway() -> None:
    """Let the next context of this process start a JVM: PySpark remembers the one that ended."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    if context is None:  # not imported, or not wholly: another thread is at it
        return
    if context._active_spark_context is None and context._gateway is not None:
        context._gateway.close()
        context._gateway = None
        context._jvm = None
