"""Whether a seed has a typed topic, and how often its columns change.

It has dice of its own: a seed without it is the run that it would be if there were none.
"""

from dataclasses import dataclass
from typing import Final

from simulation.schedule import dice

WITH_TYPED: Final = 0.25
"""Share of the seeds that have a typed topic."""

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


def draw_typed(seed: int, *, share: float = WITH_TYPED) -> TypedPlan | None:
    draw = dice(seed, "typed")
    if draw.random() >= share:
        return None
    return TypedPlan(
        producers=draw.choice((1, 2)),
        changers=draw.choice((1, 2, 2)),
        change_every_ms=draw.choice((150.0, 400.0, 900.0)),
        replan_every_ms=draw.choice((300.0, 1_000.0)),
        column_readers=dice(seed, "wanted columns").choice((0, 1)),
    )
