"""Whether a seed has operators, who ask for operations on brokers, and how often they ask.

They have dice of their own: a seed without them is the run that it would be if there were none. In a seed
without administrators they also say how many brokers there are: a drain needs more than there are replicas.
"""

from dataclasses import dataclass
from typing import Final

from simulation.schedule import dice

WITH_WISHES: Final = 0.15
"""Share of the seeds that have operators."""


@dataclass(frozen=True, slots=True)
class WishPlan:
    """``ask_every_ms``: on average."""

    brokers: int
    ask_every_ms: float


def draw_wishes(seed: int, *, share: float = WITH_WISHES) -> WishPlan | None:
    draw = dice(seed, "wishes")
    if draw.random() >= share:
        return None
    return WishPlan(brokers=draw.choice((3, 4, 5, 5)), ask_every_ms=draw.choice((200.0, 500.0, 1_000.0)))
