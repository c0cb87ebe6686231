"""The jobs of a run: apps whose drivers die, are replaced and stand still until nothing goes wrong any more,
and then come to rest.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from simulation.clients.client import Workplace
from simulation.clients.writes.driver import Driver, Progress
from simulation.clients.writes.task import Task
from simulation.invariants.atomic_writes.writes import WriteRules
from simulation.plans.writes import WriteChurn, WritePlan, app_id
from simulation.schedule import US_PER_MS, dice
from sparklog.model.ids import TopicPartition

AWAY_MS: Final = (5, 800)
"""How long an app has no driver after its last one ended."""

STALL_MS: Final = (100.0, 1_500.0, 3_000.0)
"""How long a driver stands still."""

ZOMBIES: Final = 0.5
"""How likely a task goes on when its driver has died."""


class Job:
    """The drivers of one app, one after the other, or two at once."""

    def __init__(
        self,
        place: Workplace,
        plan: WritePlan,
        number: int,
        rules: WriteRules,
        partitions: Iterable[TopicPartition],
    ) -> None:
        self.name = app_id(number)
        self._place = place
        self._plan = plan
        self._rules = rules
        self._partitions = list(partitions)
        self._draw = dice(place.seed, f"churn of {self.name}")
        self._progress = Progress()
        self._drivers: list[Driver] = []
        self._orphans: list[Task] = []
        self._is_calm = False

    def start(self) -> None:
        self._see_to_a_driver()
        self._churn_later()

    def calm(self) -> None:
        """Nothing goes wrong any more: there is a driver, and what it begins it commits."""
        self._is_calm = True
        for driver in self._drivers:
            driver.is_polite, driver.commits = True, 0
            for task in driver.tasks:
                task.is_calm = True

    def unrest(self) -> str | None:
        """What is still missing to rest. Once each has committed something its drivers begin nothing."""
        for task in [*self._orphans, *(task for driver in self._drivers for task in driver.tasks)]:
            if task.process.is_alive and not task.has_ended:
                return f"{task.process.name} still writes"
        driver = self._driver
        if driver is None:
            return f"{self.name} has no driver"
        if not driver.is_hushed and not driver.commits:
            return f"{driver.process.name} has committed nothing since all was mended"
        for one in self._drivers:
            one.is_hushed = True
            if one.process.is_alive and not one.is_idle:
                return f"{one.process.name} has not ended its write"
        return None

    @property
    def _driver(self) -> Driver | None:
        """The last one, if it goes on."""
        last = self._drivers[-1] if self._drivers else None
        return last if last is not None and last.process.is_alive and not last.has_ended else None

    def _begin(self) -> None:
        for one in self._drivers:
            one.is_replaced = True
        self._let_go()
        driver = Driver(self._place, self.name, self._plan, self._progress, self._rules, self._partitions)
        driver.is_polite = self._is_calm
        self._drivers.append(driver)
        driver.tell("begins")
        driver.start()

    def _let_go(self) -> None:
        """Of drivers that are no more, tasks may be left."""
        left = [one for one in self._drivers if one.process.is_alive and not one.has_ended]
        for driver in self._drivers:
            if driver not in left:
                self._orphans += driver.tasks
        self._drivers = left
        self._orphans = [one for one in self._orphans if one.process.is_alive and not one.has_ended]

    def _see_to_a_driver(self) -> None:
        """A run that failed is followed by another one, as long as the app is wanted."""
        if self._driver is None:
            self._begin()
        self._after(self._draw.uniform(*AWAY_MS), self._see_to_a_driver)

    def _churn_later(self) -> None:
        self._after(self._draw.expovariate(1 / self._plan.churn_ms), self._churn)

    def _after(self, delay_ms: float, action: Callable[[], None]) -> None:
        self._place.schedule.after(int(delay_ms * US_PER_MS), None, action)

    def _churn(self) -> None:
        if self._is_calm:
            return
        kind, stall_ms, driver = (
            self._draw.choice(self._plan.churn),
            self._draw.choice(STALL_MS),
            self._driver,
        )
        if driver is not None:
            driver.tell(kind)
            self._do(kind, driver, stall_ms)
        self._churn_later()

    def _do(self, kind: WriteChurn, driver: Driver, stall_ms: float) -> None:
        marks = self._place.witness.marks
        match kind:
            case "die":
                if not driver.is_idle:
                    marks.reach("a driver died in a write")
                driver.die()
                for task in driver.tasks:
                    if self._draw.random() >= ZOMBIES:
                        task.die()
            case "replace":
                if not driver.is_idle:
                    marks.reach("a driver was replaced in a write")
                driver.process.pause()
                self._after(self._draw.choice((1.0, 100.0, 600.0)), driver.process.resume)
                self._begin()
            case "stall":
                driver.process.pause()
                self._after(stall_ms, driver.process.resume)


def jobs_of(
    place: Workplace,
    plans: Sequence[WritePlan],
    rules: WriteRules,
    partitions: Iterable[TopicPartition],
) -> list[Job]:
    """The apps of a plan, whose tasks write to ``partitions``, as far as they are there."""
    where = list(partitions)
    return [Job(place, plan, number, rules, where) for number, plan in enumerate(plans)]
