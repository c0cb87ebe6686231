"""What administrators do in a run, an explicit list drawn from the seed; as with faults, each stands alone.

An operation that cannot be carried out when its time comes (there is no such topic, a log is damaged) is left
out. Moves wait for nobody: the next one may come while the last is under way, and takes its place.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

OperationKind = Literal[
    "create topic",
    "delete topic",
    "create topic again",
    "move",
    "cancel move",
    "add partition",
    "raise minimum",
    "lower minimum",
    "allow unclean elections",
    "forbid unclean elections",
    "elect preferred",
    "elect unclean",
    "elect without store",
    "delete records",
]


@dataclass(frozen=True, slots=True)
class Operation:
    """``draw``, from 0 to 1, decides the rest when the time comes: which partition, where to."""

    number: int
    at_ms: int
    kind: OperationKind
    draw: float

    def __str__(self) -> str:
        return f"at {self.at_ms} ms: {self.kind} ({self.draw:.3f})"


TOPIC_KINDS: Final[tuple[OperationKind, ...]] = ("create topic", "delete topic", "create topic again")
MOVE_KINDS: Final[tuple[OperationKind, ...]] = ("move", "cancel move")
MINIMUM_KINDS: Final[tuple[OperationKind, ...]] = ("raise minimum", "lower minimum")
UNCLEAN_KINDS: Final[tuple[OperationKind, ...]] = (
    "allow unclean elections",
    "forbid unclean elections",
    "elect unclean",
)
SINGLE_KINDS: Final[tuple[OperationKind, ...]] = ("add partition", "elect preferred", "delete records")
ALL_OPERATIONS: Final[tuple[OperationKind, ...]] = (
    *TOPIC_KINDS,
    *MOVE_KINDS,
    *MINIMUM_KINDS,
    *UNCLEAN_KINDS,
    *SINGLE_KINDS,
    "elect without store",
)
"""The last one is drawn with the store's troubles (``tier``)."""

WITH_OPERATIONS: Final = 0.55
"""Share of the seeds in which administrators do something."""

UNCLEAN: Final = 0.2
"""Share of those in which elections may lose records: there is less to check where they do."""


def draw_operations(draw: random.Random, *, begin_ms: int, end_ms: int) -> tuple[Operation, ...]:
    """Some kinds, at some rate."""
    if draw.random() >= WITH_OPERATIONS:
        return ()
    kinds: list[OperationKind] = []
    for group in (TOPIC_KINDS, MOVE_KINDS, MINIMUM_KINDS):
        if draw.random() < 0.45:
            kinds += group
    kinds += [kind for kind in SINGLE_KINDS if draw.random() < 0.4]
    if draw.random() < UNCLEAN:
        kinds += UNCLEAN_KINDS
    if not kinds:
        kinds += MOVE_KINDS
    return draw_times(draw, kinds, begin_ms=begin_ms, end_ms=end_ms)


def draw_times(
    draw: random.Random, kinds: Sequence[OperationKind], *, begin_ms: int, end_ms: int
) -> tuple[Operation, ...]:
    """Some of these kinds, at some rate; none of no kinds."""
    pause_ms = draw.choice((150.0, 400.0, 900.0))
    operations: list[Operation] = []
    at_ms = begin_ms + draw.expovariate(1 / pause_ms)
    while kinds and at_ms < end_ms:
        operations.append(Operation(len(operations), int(at_ms), draw.choice(kinds), draw.random()))
        at_ms += draw.expovariate(1 / pause_ms)
    return tuple(operations)
