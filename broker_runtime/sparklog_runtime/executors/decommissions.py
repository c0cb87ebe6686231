"""Which brokers' executors are decommissioned: Spark gives those no further task, and ends them.

Spark does not tell the task, and lets it run on until a time limit of its own. So the driver asks, twice a
second, and the broker stops in order: others lead before it ends, and its executor can end by itself. Which
executor a broker has is looked up once for each of its jobs, by the job's tag.

Where several are decommissioned, as when a pool of hosts is replaced, their brokers leave one after the
other: the next one when the last one runs again elsewhere, or after ``TURN_S``, because Spark may not wait.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sparklog_runtime.executors.broker_jobs import job_tag

logger: Final = logging.getLogger(__name__)

LOOK_INTERVAL_S: Final = 0.5
TURN_S: Final = 15.0
RUNNING: Final = "RUNNING"


@dataclass(frozen=True, slots=True)
class SlotJob:
    """A slot, and which of its jobs: another job may run on another executor."""

    slot: int
    job: int


class Decommissions:
    """Asks on a thread of its own, from construction to ``close``."""

    def __init__(
        self,
        context: Any,
        jobs: Callable[[], Sequence[SlotJob]],
        leave: Callable[[SlotJob], None],
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``jobs``: those that have a process now. ``leave`` is called once for each whose executor is
        decommissioned; ``report`` gets a line where they are several.
        """
        self._report = report
        self._context = context
        self._jobs = jobs
        self._leave = leave
        self._executors: dict[SlotJob, str] = {}
        self._decommissioned: dict[SlotJob, None] = {}
        """In the order in which they were found."""
        self._left: set[SlotJob] = set()
        self._last: SlotJob | None = None
        self._last_left_s = 0.0
        self._reported = 0
        self._closing = threading.Event()
        threading.Thread(target=self._run, name="executor-decommissions", daemon=True).start()

    def close(self) -> None:
        """Ask no more."""
        self._closing.set()

    def _run(self) -> None:
        while not self._closing.wait(LOOK_INTERVAL_S):
            self._look()

    def _look(self) -> None:
        jobs = self._jobs()
        self._executors = {job: found for job, found in self._executors.items() if job in jobs}
        self._left &= set(jobs)
        found = [job for job in jobs if job in self._decommissioned or self._must_leave(job)]
        self._decommissioned = {job: None for job in (*self._decommissioned, *found) if job in jobs}
        self._say_how_many(len(found), len(jobs))
        waiting = [job for job in self._decommissioned if job not in self._left]
        if waiting and self._is_next_ones_turn(jobs):
            self._last, self._last_left_s = waiting[0], time.monotonic()
            self._left.add(waiting[0])
            self._leave(waiting[0])

    def _is_next_ones_turn(self, jobs: Sequence[SlotJob]) -> bool:
        last = self._last
        if last is None or time.monotonic() - self._last_left_s >= TURN_S:
            return True
        return any(job.slot == last.slot and job.job > last.job for job in jobs)

    def _say_how_many(self, decommissioned: int, running: int) -> None:
        """Once they become more, and are several."""
        if decommissioned > max(1, self._reported):
            leads = (
                "; none of these executors stays, so partitions have no leader until Spark gives others"
                if decommissioned == running
                else ""
            )
            self._report(
                f"{decommissioned} of {running} executors are decommissioned: their brokers stop one after "
                f"the other{leads}"
            )
        self._reported = decommissioned

    def _must_leave(self, job: SlotJob) -> bool:
        try:
            return self._is_decommissioned(job)
        except Exception as error:  # noqa: BLE001 (py4j's, while Spark stops: the next look asks again)
            logger.info("whether slot %d is decommissioned is not known: %s", job.slot, str(error)[:200])
            return False

    def _is_decommissioned(self, job: SlotJob) -> bool:
        executor = self._executors.get(job)
        if executor is None:
            executor = self._executor_of(job.slot)
            if executor is None:
                return False
            self._executors[job] = executor
        scheduler = self._context._jsc.sc().taskScheduler()
        return bool(scheduler.getExecutorDecommissionState(executor).isDefined())

    def _executor_of(self, slot: int) -> str | None:
        """Where the running job of this slot has its task; None while Spark's own books do not say it yet."""
        spark = self._context._jsc.sc()
        for number in spark.statusTracker().getJobIdsForTag(job_tag(slot)):
            found = spark.statusTracker().getJobInfo(number)
            if not found.isDefined() or str(found.get().status()) != RUNNING:
                continue
            for stage in found.get().stageIds():
                tasks = spark.statusStore().taskList(stage, 0, 1)
                if not tasks.isEmpty():
                    return str(tasks.apply(0).executorId())
        return None
