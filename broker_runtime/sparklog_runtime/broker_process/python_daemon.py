"""PySpark's daemon, with what brokers are made of imported once, before it forks them.

Spark starts one such process per executor (``spark.python.daemon.module``) and lets it fork a worker per
task; with a local master that is one for all brokers. A worker of the plain daemon imports everything by
itself: three brokers on one machine spent 0.9 s of CPU time each on that, on the way to their first request.
What the daemon has imported they inherit, and share the memory of.

Nothing may be imported here that starts a thread, for a thread does not survive a fork and its locks do: so
neither pyarrow nor numpy, nor what is built on them. If the process has a second thread nevertheless, it
becomes the plain daemon.
"""

import gc
import importlib
import os
import pkgutil
import sys
from typing import Final

MODULES: Final = (
    "pyspark.worker",
    "sparklog.broker.to_controller.controller_link",
    "sparklog.client.cluster",
    "sparklog.network.reactor",
    "sparklog.zookeeper.kazoo_adapter",
    "sparklog.zookeeper.broker_registration",
    "sparklog_runtime.broker_process.broker_task",
)


def preload() -> None:
    """Import them and every message of the protocol; keep the collector off what is shared from now on."""
    from sparklog.wire import messages

    found = [module.name for module in pkgutil.walk_packages(messages.__path__, f"{messages.__name__}.")]
    for name in (*MODULES, *found):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def thread_count() -> int:
    """Threads of this process, also those that no Python code started; 1 where the system does not say."""
    return len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 1


def manager() -> None:
    """What Spark runs: never returns."""
    from pyspark import daemon

    preload()
    if thread_count() != 1:
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
    daemon.manager()


if __name__ == "__main__":
    manager()
