"""Which apps with atomic writes a seed has, and what becomes of their drivers and tasks.

Writes have dice of their own: a seed without them is the run that it would be if there were none.
"""

import random
from dataclasses import dataclass
from typing import Final, Literal

from simulation.schedule import dice

WriteChurn = Literal["die", "replace", "stall"]
"""A driver dies and another run follows; another run begins while it goes on; or it stands still."""

ALL_WRITE_CHURN: Final[tuple[WriteChurn, ...]] = ("die", "replace", "stall")

WITH_WRITES: Final = 0.15
"""Share of the seeds that have apps with atomic writes."""


@dataclass(frozen=True, slots=True)
class WritePlan:
    """One app. Times in milliseconds; shares say how likely something is.

    ``timeout_ms``: without a sign of life for so long its open write is aborted. ``abort_share``: a driver
    aborts a write that it could commit. Of task attempts: ``fail_share`` withdraw, ``die_share`` die,
    ``stall_share`` stand still, ``twin_share`` are run twice at a time, the messages of ``lose_share`` are
    lost. ``churn_ms``: how long a driver lives until something happens to it, on average.
    """

    tasks_max: int
    partitions_max: int
    batches_max: int
    records_max: int
    interval_ms: float
    linger_ms: float
    """How long a task pauses between two batches, on average."""
    timeout_ms: int
    abort_share: float
    fail_share: float
    die_share: float
    stall_share: float
    twin_share: float
    lose_share: float
    churn_ms: float
    churn: tuple[WriteChurn, ...]


def draw_writes(seed: int, *, share: float = WITH_WRITES) -> tuple[WritePlan, ...]:
    """The apps of a seed: none, one or two."""
    draw = dice(seed, "writes")
    if draw.random() >= share:
        return ()
    return tuple(_draw_one(draw) for _ in range(draw.choice((1, 1, 2))))


def _draw_one(draw: random.Random) -> WritePlan:
    churn = tuple(kind for kind in ALL_WRITE_CHURN if draw.random() < 0.6)
    return WritePlan(
        tasks_max=draw.choice((1, 2, 3)),
        partitions_max=draw.choice((1, 2, 3)),
        batches_max=draw.choice((1, 2)),
        records_max=draw.choice((1, 3)),
        interval_ms=draw.choice((60.0, 150.0, 400.0)),
        linger_ms=draw.choice((5.0, 60.0, 300.0)),
        timeout_ms=draw.choice((600, 1_000, 8_000)),
        abort_share=draw.choice((0.0, 0.1, 0.3)),
        fail_share=draw.choice((0.0, 0.1, 0.2)),
        die_share=draw.choice((0.0, 0.1, 0.2)),
        stall_share=draw.choice((0.0, 0.1)),
        twin_share=draw.choice((0.0, 0.2)),
        lose_share=draw.choice((0.0, 0.1)),
        churn_ms=draw.choice((500.0, 1_500.0, 3_000.0)),
        churn=churn or ("die",),
    )


def app_id(number: int) -> str:
    """``number`` is its place in the plan, from 0 on. Drivers, tasks and their links have its name."""
    return f"app-{number}"


def member_silence_ms(seed: int) -> int:
    """How long a working member may be silent. (30 s without the simulation.)"""
    return dice(seed, "silence of members").choice((500, 1_500, 4_000))


def end_wait_ms(seed: int) -> int:
    """How long a commit waits for its markers before it must be asked again. (2 s without the simulation.)"""
    return dice(seed, "waits of commits").choice((200, 800))
