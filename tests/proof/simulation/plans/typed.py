"""Whether a seed has a typed topic, and how often its columns change.

It has dice of its own: a seed without it is the run that it would be if there were none. So have readers with
a condition, and transactions there.
"""

from dataclasses import dataclass, replace
from typing import Final

from simulation.plans.transactions import TransactionPlan, draw_transaction
from simulation.schedule import dice

WITH_TYPED: Final = 0.25
"""Share of the seeds that have a typed topic."""

WITH_CONDITIONS: Final = 0.6
"""Share of those with readers of columns that have readers with a condition, too."""

TYPED_TOPIC: Final = "columns"
DDL: Final = "a int, b bigint, s struct<c: int, d: bigint>"
"""Its columns at first."""


@dataclass(frozen=True, slots=True)
class TypedPlan:
    """``changers``: administrators that change its columns, each after ``change_every_ms`` on average.
    Writers and readers begin anew, with the columns that there are then, after ``replan_every_ms``.
    """

    producers: int
    changers: int
    change_every_ms: float
    replan_every_ms: float
    column_readers: int = 0
    """Readers that name columns in their fetches."""
    condition_readers: int = 0
    """Readers that name a condition on rows, too."""
    transactions: tuple[TransactionPlan, ...] = ()


def draw_typed(
    seed: int, *, share: float = WITH_TYPED, conditions: float = WITH_CONDITIONS
) -> TypedPlan | None:
    draw = dice(seed, "typed")
    if draw.random() >= share:
        return None
    column_readers = dice(seed, "wanted columns").choice((0, 1))
    rows = dice(seed, "wanted rows")
    condition_readers = rows.choice((1, 2)) if column_readers and rows.random() < conditions else 0
    has_transactions = condition_readers > 0 and rows.random() < 0.6
    return TypedPlan(
        producers=draw.choice((1, 2)),
        changers=draw.choice((1, 2, 2)),
        change_every_ms=draw.choice((150.0, 400.0, 900.0)),
        replan_every_ms=draw.choice((300.0, 1_000.0)),
        column_readers=column_readers,
        condition_readers=condition_readers,
        transactions=(replace(draw_transaction(rows), is_pipeline=False),) * has_transactions,
    )
