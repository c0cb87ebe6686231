"""What Python an executor has; this module travels there, so it may import nothing but the standard library.

A broker's task needs sparklog on the executor's host, in the driver's version, under the driver's Python. The
task is therefore wrapped in a function that Spark ships *by value*: it compares what it finds with what the
driver has, and only where both are equal it unpickles the task, which imports sparklog.
"""

import importlib
import pickle
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

COMPARED: Final = ("python", "pyspark", "sparklog")
NOTHING: Final = ""
"""The version of a package that is not installed."""

REFUSED: Final = "refused"


def environment() -> dict[str, str]:
    """This process's ``host``, ``executable``, ``python`` (major.minor), and the versions of packages."""
    return {
        "host": socket.gethostname(),
        "executable": sys.executable,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "pyspark": _version("pyspark"),
        "sparklog": _version("sparklog"),
    }


def guarded(pickled_task: bytes, wanted: dict[str, str]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The task, for ``mapPartitions``; where the environment differs it yields ``(REFUSED, environment)``."""

    def run(rows: Iterator[Any]) -> Iterator[Any]:
        found = environment()
        if any(found[name] != wanted[name] for name in COMPARED):
            return iter([(REFUSED, found)])
        task = pickle.loads(pickled_task)  # the driver's own, as Spark's tasks are
        return iter(task(rows))

    return run


def _version(package: str) -> str:
    try:
        return str(importlib.import_module(package).__version__)
    except ImportError:
        return NOTHING
