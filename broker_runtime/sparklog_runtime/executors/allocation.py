"""How many executors Spark has given, and why it gives no more, for brokers that wait for them.

The number is the driver's own. Only a standalone master is asked for the reason (``master_page``). Where the
reason is unknown, the words give the number alone.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sparklog_runtime.executors.master_page import FreeWorker, PageUnknown, free_workers
from sparklog_runtime.settings.settings_check import memory_mib

logger: Final = logging.getLogger(__name__)

ASK_INTERVAL_S: Final = 1.0
ASKED_FOR_S: Final = 10.0
"""How long an answer is kept current after a question: the next one is expected within this time."""


@dataclass(frozen=True, slots=True)
class ExecutorSize:
    """What one executor takes from a worker."""

    cores: int
    memory_mib: int

    @classmethod
    def of(cls, conf: Mapping[str, str]) -> "ExecutorSize":
        """As a standalone worker counts it: memory is the heap alone, without what Spark adds elsewhere."""
        heap = memory_mib(conf.get("spark.executor.memory", "1g")) or 1024.0
        return cls(int(conf.get("spark.executor.cores", "1")), int(heap))


@dataclass(frozen=True, slots=True)
class Capacity:
    """What is known of the executors: how many Spark has given, and what the master has left."""

    given: int = 0
    workers: Sequence[FreeWorker] | None = None
    """Live workers of a standalone master; None where that is not known, or the master is of another kind."""
    unknown: str = ""
    """Why it is not known, where the master was asked."""


def allocation_in_words(wanted: int, waited_s: float, size: ExecutorSize, capacity: Capacity) -> str:
    """A start's line: how many executors there are, and what keeps the master from more."""
    counted = f"Spark has given {capacity.given} of {wanted} executors for {waited_s:.0f} s"
    return counted + _reason(size, capacity)


def wait_in_words(broker: str, waited_s: float, wanted: int, size: ExecutorSize, capacity: Capacity) -> str:
    """The line of a broker that has ended and is not launched again yet."""
    if capacity.given >= wanted:
        return (
            f"{broker}: no process for {waited_s:.0f} s, although Spark has given {capacity.given} executors"
        )
    return f"{broker}: no executor for {waited_s:.0f} s{_reason(size, capacity)}"


def _reason(size: ExecutorSize, capacity: Capacity) -> str:
    workers = capacity.workers
    if workers is None:
        return f"; what the master has free is not known: {capacity.unknown}" if capacity.unknown else ""
    if not workers:
        return "; the master has no workers: add some"
    cores, most = sum(worker.cores for worker in workers), max(worker.cores for worker in workers)
    if most < size.cores:
        spread = f", {most} at most on one worker," if cores >= size.cores else ""
        remedy = "lower spark.executor.cores" if most else "end other applications"
        return (
            f"; the master has {cores} cores free{spread} and an executor takes {size.cores}: "
            f"add workers, or {remedy}"
        )
    memory = max(worker.memory_mib for worker in workers if worker.cores >= size.cores)
    if memory < size.memory_mib:
        return (
            f"; no worker has more than {memory} MiB free and an executor takes {size.memory_mib} "
            "MiB: add workers, or lower spark.executor.memory"
        )
    return f"; the master has {cores} cores free, which is enough: executors are starting"


class ExecutorAllocation:
    """Asks, from construction to ``close``, on a thread of its own: a master may be slow to answer.

    It asks while somebody waits: for ``ASKED_FOR_S`` after it was made, and after each question.
    """

    def __init__(self, context: Any, master: str, conf: Mapping[str, str], wanted: int) -> None:
        self._context = context
        self._master = master
        self._size = ExecutorSize.of(conf)
        self._wanted = wanted
        self._capacity: Capacity | None = None
        """None until the first answer after a time in which nobody waited."""
        self._asked = threading.Event()
        self._asked.set()
        self._closing = False
        threading.Thread(target=self._run, name="executor-allocation", daemon=True).start()

    def in_words(self, waited_s: float) -> str | None:
        """Why brokers are missing at a start; None when every executor is there, or while it is unknown."""
        self._asked.set()
        capacity = self._capacity
        if capacity is None or capacity.given >= self._wanted:
            return None
        return allocation_in_words(self._wanted, waited_s, self._size, capacity)

    def wait_in_words(self, broker: str, waited_s: float) -> str | None:
        """Why ``broker`` is not launched again; None before the first answer."""
        self._asked.set()
        capacity = self._capacity
        if capacity is None:
            return None
        return wait_in_words(broker, waited_s, self._wanted, self._size, capacity)

    def close(self) -> None:
        """Ask no more."""
        self._closing = True
        self._asked.set()

    def _run(self) -> None:
        while True:
            if not self._asked.wait(ASKED_FOR_S):
                self._capacity = None
                self._asked.wait()
            self._asked.clear()
            if self._closing:
                return
            self._capacity = self._ask()
            time.sleep(ASK_INTERVAL_S)

    def _ask(self) -> Capacity:
        try:
            # Spark counts the driver, too.
            given = int(self._context._jsc.sc().getExecutorMemoryStatus().size()) - 1
            return Capacity(given, free_workers(self._context, self._master))
        except PageUnknown as unknown:
            return Capacity(given, None, str(unknown))
        except Exception as error:  # noqa: BLE001 (py4j's: the wait itself goes on without a reason)
            logger.info("the master did not say why executors are missing: %s", str(error).splitlines()[:1])
            return Capacity(0 if self._capacity is None else self._capacity.given)
