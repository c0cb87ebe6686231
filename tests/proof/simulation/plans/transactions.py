"""Which transactional producers a seed has, and what becomes of them.

Transactions have dice of their own: a seed without them is the run that it would be if there were none.
"""

import random
from dataclasses import dataclass
from typing import Final, Literal

from simulation.schedule import dice

TransactionChurn = Literal["die", "replace", "stall"]
"""A producer dies and is replaced; is replaced while it goes on, as a zombie; or stands still for a while."""

ALL_TRANSACTION_CHURN: Final[tuple[TransactionChurn, ...]] = ("die", "replace", "stall")

WITH_TRANSACTIONS: Final = 0.25
"""Share of the seeds that have transactional producers."""


PIPELINES: Final = 0.5
"""Share of the transactional ids whose producers are pipelines."""


@dataclass(frozen=True, slots=True)
class TransactionPlan:
    """One transactional id. Times in milliseconds.

    ``abort_share``: how likely a transaction is aborted by its producer; ``silent_share``: how likely it is
    left open until it times out. ``churn_ms``: how long a producer lives until something happens to it, on
    average.
    """

    timeout_ms: int
    interval_ms: float
    partitions_max: int
    batches_max: int
    records_max: int
    abort_share: float
    silent_share: float
    churn_ms: float
    churn: tuple[TransactionChurn, ...]
    is_pipeline: bool = False
    """Whether its producers commit a position of a group in each transaction."""


def draw_transactions(seed: int, *, share: float = WITH_TRANSACTIONS) -> tuple[TransactionPlan, ...]:
    """The transactional ids of a seed: none, one or two."""
    draw = dice(seed, "transactions")
    if draw.random() >= share:
        return ()
    return tuple(draw_transaction(draw) for _ in range(draw.choice((1, 2, 2))))


def draw_transaction(draw: random.Random) -> TransactionPlan:
    """One transactional id."""
    churn = tuple(kind for kind in ALL_TRANSACTION_CHURN if draw.random() < 0.6)
    return TransactionPlan(
        timeout_ms=draw.choice((400, 1_000, 3_000)),
        interval_ms=draw.choice((60.0, 150.0, 400.0)),
        partitions_max=draw.choice((1, 2, 3)),
        batches_max=draw.choice((1, 2, 3)),
        records_max=draw.choice((1, 3)),
        abort_share=draw.choice((0.1, 0.3, 0.5)),
        silent_share=draw.choice((0.0, 0.0, 0.1)),
        churn_ms=draw.choice((400.0, 1_200.0, 3_000.0)),
        churn=churn or ("die",),
        is_pipeline=draw.random() < PIPELINES,
    )


def has_pipelines(transactions: tuple[TransactionPlan, ...]) -> bool:
    return any(one.is_pipeline for one in transactions)


def transactional_id(number: int) -> str:
    """``number`` is its place in the plan, from 0 on. Producers and their links have its name."""
    return f"transactional-{number}"


def settings_for_transactions(seed: int, session_timeout_ms: int) -> dict[str, str]:
    """The brokers' settings that transactions depend on. ``session_timeout_ms`` is ZooKeeper's, which brokers
    must know: their coordinators doubt after a third of it."""
    draw = dice(seed, "settings for transactions")
    return {
        "zookeeper.session.timeout.ms": str(session_timeout_ms),
        "transaction.state.log.num.partitions": draw.choice(("1", "2")),
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": draw.choice(("1", "2", "2")),
        "transaction.state.log.segment.bytes": draw.choice(("1000", "4000", "1048576")),
        "offsets.load.buffer.size": draw.choice(("300", "2000", "5242880")),
        "offsets.commit.timeout.ms": draw.choice(("300", "1000", "5000")),
    }
