"""The batch reads of a run, one execution after the other: a task for each partition, some of which are run
again after a failure, or beside or behind one that was successful.
"""

from collections.abc import Callable, Sequence
from typing import Final

from simulation.clients.client import Workplace
from simulation.clients.writes.cut_task import CutTask
from simulation.invariants.atomic_writes.cuts import CutRules, Execution
from simulation.schedule import US_PER_MS, dice
from sparklog.model.ids import TopicPartition

PAUSE_MS: Final = (50, 600)
"""How long there is no execution after the last one."""

LOOK_MS: Final = 50
SPREAD_MS: Final = (0.0, 5.0, 200.0)
"""Over which time the tasks of an execution begin."""

ATTEMPTS_MAX: Final = 3
TWICE: Final = 0.3
"""How likely a task is run once more, although it was successful."""

DEATH: Final = 0.1
"""How likely an attempt dies."""

DEATH_MS: Final = (1, 300)


class BatchReads:
    """``partitions`` are what each execution reads, as far as they are there."""

    def __init__(self, place: Workplace, rules: CutRules, partitions: Sequence[TopicPartition]) -> None:
        self._place = place
        self._rules = rules
        self._partitions = partitions
        self._draw = dice(place.seed, "batch reads")
        self._count = self._attempts = 0
        self._execution: Execution | None = None
        self._tasks: dict[TopicPartition, list[CutTask]] = {}
        self._late: list[CutTask] = []
        """Attempts at tasks of executions that are over."""
        self._is_calm = self._is_hushed = self._has_read = False

    def start(self) -> None:
        self._after(self._draw.uniform(*PAUSE_MS), self._begin)

    def calm(self) -> None:
        """Nothing goes wrong any more: a read that begins now comes to its end."""
        self._is_calm = True

    def unrest(self) -> str | None:
        """What is still missing to rest. Once an execution has read everything none begins."""
        if not self._has_read:
            return "no batch read has read everything since all was mended"
        self._is_hushed = True
        for task in [*self._late, *(one for tasks in self._tasks.values() for one in tasks)]:
            if task.is_under_way:
                return f"{task.process.name} still reads"
        return None

    def _begin(self) -> None:
        if self._is_hushed:
            return
        self._count += 1
        execution = self._rules.begin(f"read-{self._count}", self._partitions)
        self._execution = execution
        self._late = [one for one in self._late if one.is_under_way]
        self._tasks = {where: [] for where in execution.partitions}
        is_calm = self._is_calm
        spread_ms = self._draw.choice(SPREAD_MS)
        for where in execution.partitions:
            self._later(self._draw.uniform(0, spread_ms), execution, where)
            if self._draw.random() < TWICE:
                self._later(self._draw.uniform(0, 3 * PAUSE_MS[1]), execution, where)
        self._after(spread_ms + LOOK_MS, lambda: self._look(execution, is_calm=is_calm))

    def _later(self, delay_ms: float, execution: Execution, where: TopicPartition) -> None:
        self._after(delay_ms, lambda: self._try(execution, where))

    def _try(self, execution: Execution, where: TopicPartition) -> None:
        self._attempts += 1
        task = CutTask(self._place, execution, where, self._attempts, self._rules)
        (self._tasks[where] if execution is self._execution else self._late).append(task)
        task.start()
        if self._draw.random() < DEATH and not self._is_calm:
            self._after(self._draw.uniform(*DEATH_MS), task.die)

    def _look(self, execution: Execution, *, is_calm: bool) -> None:
        """Run again what failed. Once nothing goes on the execution is over."""
        unread = [where for where, tasks in self._tasks.items() if not any(one.has_read for one in tasks)]
        for where in unread:
            tasks = self._tasks[where]
            if len(tasks) < ATTEMPTS_MAX and not any(one.is_under_way for one in tasks):
                self._try(execution, where)
        if any(one.is_under_way for where in unread for one in self._tasks[where]):
            self._after(LOOK_MS, lambda: self._look(execution, is_calm=is_calm))
            return
        self._has_read |= is_calm and not unread
        self._late += [one for tasks in self._tasks.values() for one in tasks]
        self.start()

    def _after(self, delay_ms: float, action: Callable[[], None]) -> None:
        self._place.schedule.after(int(delay_ms * US_PER_MS), None, action)
