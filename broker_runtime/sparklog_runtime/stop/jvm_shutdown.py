"""Brokers stop before Spark does, when Spark's JVM is the process that gets the signal.

``kill`` of ``spark-submit`` hits the JVM. Its shutdown would stop the Spark context first, and with it every
executor: brokers would lose their controller and their time for a clean stop. Therefore a shutdown hook that
runs before Spark's own has this process stop as if it got the signal itself, and waits for that.

Hadoop's ``ShutdownHookManager``, which Spark uses, runs hooks one after another by descending priority; that
of Spark's hook is 40. Ours is Python: the JVM calls it over py4j's callback connection, which works until
the JVM ends.
"""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any, Final

logger: Final = logging.getLogger(__name__)

HOOK_PRIORITY: Final = 1_000
HOOK_TIMEOUT_S: Final = 75
"""After that Spark's own shutdown begins, whatever we do. Above the deadline of our own stop."""


class _StopThisProcess:
    """A ``java.lang.Runnable``: signals this process, and returns when ``stopped`` is set."""

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped = stopped

    def run(self) -> None:
        logger.info("Spark's JVM shuts down: stopping first")
        os.kill(os.getpid(), signal.SIGTERM)
        self._stopped.wait(HOOK_TIMEOUT_S)

    class Java:
        implements: Final = ["java.lang.Runnable"]


@contextlib.contextmanager
def stop_before_spark(context: Any) -> Iterator[None]:
    """Within the block, a shutdown of ``context``'s JVM sends us SIGTERM and waits for the block's end."""
    # start time: a driver without Spark has no use for it
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(context._gateway)
    jvm, stopped = context._jvm, threading.Event()
    # A thread that is never started: the JVM needs one object of its own to find the hook again.
    hook = jvm.java.lang.Thread(_StopThisProcess(stopped))
    manager = jvm.org.apache.hadoop.util.ShutdownHookManager.get()
    manager.addShutdownHook(hook, HOOK_PRIORITY, HOOK_TIMEOUT_S, jvm.java.util.concurrent.TimeUnit.SECONDS)
    try:
        yield
    finally:
        stopped.set()
        try:
            manager.removeShutdownHook(hook)
        except Exception as error:  # noqa: BLE001 (py4j's: the JVM shuts down, or has ended)
            logger.info("the shutdown hook was not removed: %s", type(error).__name__)
