"""How many executors Spark has given, and why it gives no more, for a start that waits for them.

The number is the driver's own. Only a standalone master is asked for the reason, as its own web page
asks it (``RequestMasterState``), because an application does not know where that page is. Where the reason
is unknown, the words give the number alone.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sparklog_runtime.settings.settings_check import memory_mib

logger: Final = logging.getLogger(__name__)

ASK_INTERVAL_S: Final = 1.0
_OVERHEAD_SHARE: Final = 0.1
_OVERHEAD_MIB_MIN: Final = 384
_ALIVE: Final = "ALIVE"


@dataclass(frozen=True, slots=True)
class FreeWorker:
    """What a live worker of a standalone master has to give."""

    cores: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class ExecutorSize:
    """What one executor takes from a worker."""

    cores: int
    memory_mib: int

    @classmethod
    def of(cls, conf: Mapping[str, str]) -> "ExecutorSize":
        """As Spark works it out from its settings, without off-heap memory and without PySpark's limit."""
        heap = memory_mib(conf.get("spark.executor.memory", "1g")) or 1024.0
        given = memory_mib(conf.get("spark.executor.memoryOverhead", ""))
        overhead = given if given is not None else max(_OVERHEAD_MIB_MIN, heap * _OVERHEAD_SHARE)
        return cls(int(conf.get("spark.executor.cores", "1")), int(heap + overhead))


def allocation_in_words(
    given: int, wanted: int, waited_s: float, size: ExecutorSize, workers: Sequence[FreeWorker] | None
) -> str:
    """One line: how many executors there are, and what keeps the master from more; None: it was not asked."""
    counted = f"Spark has given {given} of {wanted} executors for {waited_s:.0f} s"
    if workers is None:
        return counted
    if not workers:
        return f"{counted}; the master has no workers: add some"
    cores, most = sum(worker.cores for worker in workers), max(worker.cores for worker in workers)
    if most < size.cores:
        spread = f", {most} at most on one worker," if cores >= size.cores else ""
        return (
            f"{counted}; the master has {cores} cores free{spread} and an executor takes {size.cores}: "
            "add workers, or lower spark.executor.cores"
        )
    memory = max(worker.memory_mib for worker in workers if worker.cores >= size.cores)
    if memory < size.memory_mib:
        return (
            f"{counted}; no worker has more than {memory} MiB free and an executor takes {size.memory_mib} "
            "MiB: add workers, or lower spark.executor.memory"
        )
    return f"{counted}; the master has {cores} cores free, which is enough: executors are starting"


class ExecutorAllocation:
    """Asks, from construction to ``close``, on a thread of its own: a master may be slow to answer."""

    def __init__(self, context: Any, master: str, conf: Mapping[str, str], wanted: int) -> None:
        self._context = context
        self._master = master
        self._size = ExecutorSize.of(conf)
        self._wanted = wanted
        self._given = 0
        self._workers: list[FreeWorker] | None = None
        self._closing = threading.Event()
        threading.Thread(target=self._run, name="executor-allocation", daemon=True).start()

    def in_words(self, waited_s: float) -> str | None:
        """Why brokers are missing; None when every executor is there."""
        if self._given >= self._wanted:
            return None
        return allocation_in_words(self._given, self._wanted, waited_s, self._size, self._workers)

    def close(self) -> None:
        """Ask no more."""
        self._closing.set()

    def _run(self) -> None:
        while not self._closing.wait(ASK_INTERVAL_S):
            try:
                # Spark counts the driver, too.
                self._given = int(self._context._jsc.sc().getExecutorMemoryStatus().size()) - 1
                self._workers = free_workers(self._context, self._master)
            except Exception as error:  # noqa: BLE001 (py4j's: the wait itself goes on without a reason)
                logger.info(
                    "the master did not say why executors are missing: %s", str(error).splitlines()[:1]
                )
                self._workers = None


def free_workers(context: Any, master: str) -> list[FreeWorker] | None:
    """The live workers of the standalone master in charge; None if ``master`` names none that answers so."""
    if not master.startswith("spark://"):
        return None
    jvm, deploy = context._jvm, context._jvm.org.apache.spark.deploy
    request = getattr(getattr(deploy, "DeployMessages$RequestMasterState$"), "MODULE$")
    any_class = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").Any()
    # SparkEnv has the same, but py4j cannot reflect on that class where no protobuf is installed.
    rpc = context._jsc.sc().schedulerBackend().rpcEnv()
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        endpoint = jvm.org.apache.spark.rpc.RpcAddress(host, int(port))
        answering = rpc.setupEndpointRef(endpoint, "Master")
        state = answering.askSync(request, any_class)
        if str(state.status()) == _ALIVE:
            alive = [worker for worker in state.workers() if str(worker.state()) == _ALIVE]
            return [FreeWorker(int(worker.coresFree()), int(worker.memoryFree())) for worker in alive]
    return None
