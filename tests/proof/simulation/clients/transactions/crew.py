"""The transactional ids of a run: whose producers die, are replaced and stand still until nothing goes wrong
any more, and then come to rest.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from simulation.clients.client import Workplace
from simulation.clients.transactions.pipeline import Pipeline
from simulation.clients.transactions.producer import TransactionalProducer
from simulation.invariants.transactions import TransactionRules
from simulation.plans.transactions import TransactionChurn, TransactionPlan, transactional_id
from simulation.schedule import US_PER_MS, dice
from sparklog.model.ids import TopicPartition

AWAY_MS: Final = (5, 800)
"""How long a transactional id has no producer after its last one died."""

STALL_SHARES: Final = (0.3, 1.2, 2.5)
"""How long a producer stands still, in its transactions' time-outs."""


class Crew:
    """The producers of one transactional id, one after the other, or two at once."""

    def __init__(
        self,
        place: Workplace,
        plan: TransactionPlan,
        name: str,
        rules: TransactionRules,
        partitions: Iterable[TopicPartition],
    ) -> None:
        self.name = name
        self._place = place
        self._plan = plan
        self._rules = rules
        self._partitions = list(partitions)
        self._draw = dice(place.seed, f"churn of {self.name}")
        self._producers: list[TransactionalProducer] = []
        self._lives = 0
        self._is_calm = False

    def start(self) -> None:
        self._begin()
        self._churn_later()

    def calm(self) -> None:
        """Nothing goes wrong any more: there is a producer, and it ends what it begins."""
        self._is_calm = True
        if self._producer is None:
            self._begin()
        for one in self._producers:
            one.is_polite, one.commits = True, 0

    def unrest(self) -> str | None:
        """What is still missing to rest. Once each has committed something its producers begin nothing."""
        for one in self._producers:
            if not one.process.is_alive or one.has_ended:
                continue
            if not one.is_hushed and not one.commits and not one.is_replaced:
                return f"{one.process.name} has committed nothing since all was mended"
            one.is_hushed = True
            if not one.is_idle:
                return f"{one.process.name} has a transaction still"
        return None

    @property
    def _producer(self) -> TransactionalProducer | None:
        """The last one, if it lives."""
        last = self._producers[-1] if self._producers else None
        return last if last is not None and last.process.is_alive else None

    def _begin(self) -> None:
        for one in self._producers:
            one.is_replaced = True
        self._producers = [one for one in self._producers if one.process.is_alive and not one.has_ended]
        self._lives += 1
        producer = self._new()
        self._producers.append(producer)
        producer.tell("begins")
        producer.start()

    def _new(self) -> TransactionalProducer:
        kind = Pipeline if self._plan.is_pipeline else TransactionalProducer
        return kind(self._place, self.name, self._lives, self._plan, self._rules, self._partitions)

    def _churn_later(self) -> None:
        self._after(self._draw.expovariate(1 / self._plan.churn_ms), self._churn)

    def _after(self, delay_ms: float, action: Callable[[], None]) -> None:
        self._place.schedule.after(int(delay_ms * US_PER_MS), None, action)

    def _churn(self) -> None:
        if self._is_calm:
            return
        kind, away_ms = self._draw.choice(self._plan.churn), self._draw.uniform(*AWAY_MS)
        stall_ms = self._draw.choice(STALL_SHARES) * self._plan.timeout_ms
        producer = self._producer
        if producer is not None:
            producer.tell(kind)
            self._do(kind, producer, away_ms, stall_ms)
        self._churn_later()

    def _do(
        self, kind: TransactionChurn, producer: TransactionalProducer, away_ms: float, stall_ms: float
    ) -> None:
        marks = self._place.witness.marks
        match kind:
            case "die":
                if not producer.is_idle:
                    marks.reach("a producer died in a transaction")
                producer.die()
                self._after(away_ms, self._fill)
            case "replace":
                if not producer.is_idle:
                    marks.reach("a producer was replaced in a transaction")
                producer.process.pause()
                self._after(self._draw.choice((1.0, 100.0, 600.0)), producer.process.resume)
                self._begin()
            case "stall":
                producer.process.pause()
                self._after(stall_ms, producer.process.resume)

    def _fill(self) -> None:
        if self._producer is None:
            self._begin()


def crews_of(
    place: Workplace,
    plans: Sequence[TransactionPlan],
    rules: TransactionRules,
    partitions: Iterable[TopicPartition],
) -> list[Crew]:
    """The transactional ids of a plan, whose producers write to ``partitions``, as far as they are there."""
    where = list(partitions)
    return [Crew(place, plan, transactional_id(number), rules, where) for number, plan in enumerate(plans)]
