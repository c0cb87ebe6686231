"""Whether a seed has operators, who ask for operations on brokers, and how often they ask.

They have dice of their own: a seed without them is the run that it would be if there were none. In a seed
without administrators they also say how many brokers there are: a drain needs more than there are replicas.
"""

from dataclasses import dataclass
from typing import Final

from simulation.schedule import dice

WITH_WISHES: Final = 0.15
"""Share of the seeds that have operators."""

WITH_THROTTLES: Final = 0.5
"""Share of those whose operators also move partitions with a throttle."""


@dataclass(frozen=True, slots=True)
class WishPlan:
    """``ask_every_ms``: on average. ``throttles``: whether operators also move partitions with a throttle."""

    brokers: int
    ask_every_ms: float
    throttles: bool = False


def draw_wishes(
    seed: int, *, share: float = WITH_WISHES, throttles: float = WITH_THROTTLES
) -> WishPlan | None:
    """``throttles``: share of the plans that have moves with a throttle."""
    draw = dice(seed, "wishes")
    if draw.random() >= share:
        return None
    return WishPlan(
        brokers=draw.choice((3, 4, 5, 5)),
        ask_every_ms=draw.choice((200.0, 500.0, 1_000.0)),
        throttles=dice(seed, "throttled moves").random() < throttles,
    )
