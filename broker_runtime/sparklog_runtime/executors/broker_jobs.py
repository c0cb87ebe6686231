"""What the Spark jobs of brokers need: a thread each, and an executor of their own.

PySpark is imported late, because a start makes it while Spark's JVM starts.
"""

import threading
from collections.abc import Callable
from typing import Any


def inheritable_thread() -> Callable[..., threading.Thread]:
    """PySpark's thread that keeps job tags apart: each is pinned to a JVM thread of its own."""
    from pyspark import InheritableThread

    made: Callable[..., threading.Thread] = InheritableThread
    return made


def job_tag(slot: int) -> str:
    """By which a slot's Spark job is found."""
    return f"sparklog-broker-{slot}"


def one_broker_per_executor(executor_cores: int) -> Any:
    """A profile whose task takes more than half an executor, or None where one task fills it anyway."""
    if executor_cores <= 1:
        return None
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    return ResourceProfileBuilder().require(TaskResourceRequests().cpus(executor_cores // 2 + 1)).build
