"""The driver of an app: version after version, each with some tasks, until it dies or is replaced.

    attempts of all tasks -> one message of each -> EndWrite: commit -> saved -> the next version
          ^        |                                   |
          +--------+ fails, dies: another attempt      +-- refused: EndWrite: abort, and this run is over

A run that follows it begins behind the last version that was saved.
"""

from collections.abc import Iterable
from math import inf
from typing import Final

from simulation.clients.client import RETRY_MS, Workplace
from simulation.clients.transactions.script import GaveUpError, Script, ScriptedClient, Wait
from simulation.clients.writes.asking import ask_coordinator
from simulation.clients.writes.task import Message, Task
from simulation.invariants.atomic_writes.writes import Attempt, WriteRules
from simulation.plans.writes import WritePlan
from simulation.schedule import US_PER_MS, dice
from sparklog.model.ids import TopicPartition
from sparklog.model.write_outcomes import EndOutcome
from sparklog.wire.messages.writes.end_write import EndWriteRequest

LOOK_MS: Final = 30
"""How often a driver looks at its tasks."""

ATTEMPTS_MAX: Final = 4
"""Of one task, until its driver gives the write up."""

ATTEMPT_MS: Final = 3_000
"""How long a driver waits for an attempt, before it runs the task once more beside it."""


class Progress:
    """What an app's runs save for those that follow, and the number of the next version."""

    def __init__(self) -> None:
        self.next_version = 0
        self.runs = 0


class _Work:
    """One task of a version, with its attempts."""

    def __init__(self) -> None:
        self.attempts: list[Task] = []
        self.failed = 0
        self.message: Message | None = None
        self.begun_us = 0

    @property
    def is_tried(self) -> bool:
        """Whether an attempt goes on."""
        going = [one for one in self.attempts if one.process.is_alive and not one.has_ended]
        return bool(going)


class Driver(ScriptedClient):
    """One run. ``commits`` counts what it was told to be committed."""

    def __init__(
        self,
        place: Workplace,
        app: str,
        plan: WritePlan,
        progress: Progress,
        rules: WriteRules,
        partitions: Iterable[TopicPartition],
    ) -> None:
        progress.runs += 1
        self.run = f"run {progress.runs}"
        self.is_replaced = False
        self.is_hushed = False
        """Whether it begins no version any more."""
        self.is_polite = False
        """Whether it commits what it can."""
        self.is_idle = True
        self.commits = 0
        self.tasks: list[Task] = []
        self._plan = plan
        self._progress = progress
        self._rules = rules
        self._partitions = list(partitions)
        super().__init__(place, app, self.run)

    def live(self) -> Script:
        while not self.is_replaced:
            yield Wait(self._draw.expovariate(1 / self._plan.interval_ms))
            if self.is_hushed or self.is_replaced:
                continue
            self.is_idle = False
            version = self._progress.next_version
            try:
                yield from self._write(version)
            except GaveUpError:
                self.tell(f"gives version {version} up")
                yield from self._abort(version)
                self.is_idle = True
                return
            self.is_idle = True

    def _write(self, version: int) -> Script:
        count = dice(self._place.seed, f"{self.name} version {version}").randint(0, self._plan.tasks_max)
        self.tell(f"begins version {version} with {count} tasks")
        works = [_Work() for _ in range(count)]
        self.tasks = [one for one in self.tasks if one.process.is_alive and not one.has_ended]
        while any(one.message is None for one in works):
            for number, work in enumerate(works):
                self._look_after(version, number, work)
            yield Wait(LOOK_MS)
        if not self.is_polite and self._draw.random() < self._plan.abort_share:
            raise GaveUpError
        winners = [one.message.producer_id for one in works if one.message is not None]
        yield from self._commit(version, [one for one in winners if one is not None])

    # ---- tasks ---------------------------------------------------------------------------------------------

    def _look_after(self, version: int, number: int, work: _Work) -> None:
        """Raises GaveUpError if the task has failed too often."""
        if work.message is not None:
            return
        is_late = self.now_us > work.begun_us + ATTEMPT_MS * US_PER_MS
        if work.is_tried and not is_late:
            return
        if len(work.attempts) >= ATTEMPTS_MAX:
            if work.is_tried:
                return
            raise GaveUpError
        self._try(version, number, work)
        if not self.is_polite and self._draw.random() < self._plan.twin_share:
            self._place.witness.marks.reach("a task was run twice at a time")
            self._try(version, number, work)

    def _try(self, version: int, number: int, work: _Work) -> None:
        name = f"{self.run} task {version}/{number}.{len(work.attempts)}"
        attempt = Attempt(self.name, version, self.run, name)

        def told(message: Message) -> None:
            """The first that is done counts."""
            if message.is_done and work.message is None:
                work.message = message

        task = Task(
            self._place,
            self._plan,
            attempt,
            self._rules,
            self._partitions,
            lambda message: self.process.soon(lambda: told(message)),
        )
        task.is_calm = self.is_polite
        work.attempts.append(task)
        work.begun_us = self.now_us
        self.tasks.append(task)
        task.start()

    # ---- the end -------------------------------------------------------------------------------------------

    def _commit(self, version: int, winners: list[int]) -> Script:
        commit = self._rules.on_wish(self.name, version, self.run, winners)
        self.tell(f"commits version {version} with {winners}")
        request = EndWriteRequest(
            app_id=self.name, app_version=version, run=self.run, is_commit=True, winners=winners
        )
        while True:
            response = yield from ask_coordinator(self, self.name, request, until_us=inf)
            outcome = EndOutcome(response.outcome)
            self.tell(f"is told {outcome.name} of version {version}")
            if outcome not in (EndOutcome.BEING_ENDED, EndOutcome.NOT_VISIBLE_YET):
                break
            yield Wait(RETRY_MS)
        self._rules.on_ended(self.name, version, commit, outcome, response.app_version)
        if outcome not in (EndOutcome.COMMITTED, EndOutcome.ALREADY_COMMITTED):
            raise GaveUpError
        self.commits += 1
        self._progress.next_version = max(self._progress.next_version, version + 1)

    def _abort(self, version: int) -> Script:
        self._rules.on_abort(self.name, version, self.run)
        request = EndWriteRequest(app_id=self.name, app_version=version, run=self.run, is_commit=False)
        try:
            response = yield from ask_coordinator(self, self.name, request, until_us=self.now_us)
        except GaveUpError:
            return
        self.tell(f"is told {EndOutcome(response.outcome).name} of the abort of version {version}")
        if response.outcome == EndOutcome.ABORTED:
            self._rules.on_aborted(self.name, version, self.run)
