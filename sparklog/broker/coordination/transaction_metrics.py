"""Metrics of transactions (docs/metrics.md), read from their machines without locks."""

from collections.abc import Mapping, Sequence

from sparklog.core.write_coordinator.transaction_state_shard import TransactionStateShard
from sparklog.model.metric import Metric, counter, gauge

ENDS = ("committed", "aborted", "timed_out", "fenced")


def transaction_metrics(machines: Sequence[TransactionStateShard], counts: Mapping[str, int]) -> list[Metric]:
    """Transactions that are coordinated here, and how others have ended since the broker's start."""
    open_now = [value for machine in machines for value in machine.transactions.open_transactions()]
    return [
        gauge(
            "sparklog_transactions_open",
            "Transactions coordinated here that are open or being ended.",
            len(open_now),
        ),
        gauge(
            "sparklog_transactions_oldest_start_milliseconds",
            "When the oldest of them began, by the wall clock since 1970; 0 without one.",
            min((value.start_ms for value in open_now), default=0),
        ),
        *(
            counter(
                "sparklog_transactions_ended_total",
                "Transactions coordinated here that have ended. Those that timed out, or whose producer was "
                "replaced, are aborted too.",
                counts.get(outcome, 0),
                outcome=outcome,
            )
            for outcome in ENDS
        ),
    ]
