"""Metrics of transactions and atomic writes (docs/metrics.md), read from their machines without locks."""

from collections.abc import Mapping, Sequence

from sparklog.core.write_coordinator.transaction_state_machine import TransactionStateMachine
from sparklog.model.metric import Metric, counter, gauge

ENDS = ("committed", "aborted", "timed_out", "fenced")
ENDS_OF_WRITES = ("committed", "aborted", "timed_out", "replaced")


def transaction_metrics(
    machines: Sequence[TransactionStateMachine], counts: Mapping[str, int]
) -> list[Metric]:
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
        *_of_writes(machines, counts),
    ]


def _of_writes(machines: Sequence[TransactionStateMachine], counts: Mapping[str, int]) -> list[Metric]:
    open_now = [app for machine in machines for app in machine.writes.open_writes()]
    return [
        gauge(
            "sparklog_writes_open",
            "Atomic writes coordinated here that are open or being ended.",
            len(open_now),
        ),
        gauge(
            "sparklog_write_members",
            "Task attempts in these writes, those that were aborted included.",
            sum(len(app.members) for app in open_now),
        ),
        gauge(
            "sparklog_writes_oldest_start_milliseconds",
            "When the oldest of these writes began, by the wall clock since 1970; 0 without one.",
            min((app.head.start_ms for app in open_now), default=0),
        ),
        *(
            counter(
                "sparklog_writes_ended_total",
                "Atomic writes coordinated here whose end was decided. Those that timed out, or gave way to "
                "a later version, are aborted too.",
                counts.get(f"writes_{outcome}", 0),
                outcome=outcome,
            )
            for outcome in ENDS_OF_WRITES
        ),
    ]
