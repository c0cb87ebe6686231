"""Metrics of consumer groups (docs/metrics.md), read from their machines without locks."""

from collections import Counter
from collections.abc import Mapping, Sequence

from sparklog.core.group.group_machine import GroupMachine
from sparklog.core.group.states import GroupState
from sparklog.model.metric import Metric, counter, gauge

STATES = tuple(state for state in GroupState if state is not GroupState.DEAD)


def group_metrics(machines: Sequence[GroupMachine], counts: Mapping[str, int]) -> list[Metric]:
    """Groups that are coordinated here, by state, and what happened to groups since the broker's start."""
    states: Counter[GroupState] = sum((machine.states() for machine in machines), Counter())
    return [
        *(
            gauge(
                "sparklog_groups", "Consumer groups coordinated here, by state.", states[state], state=state
            )
            for state in STATES
        ),
        counter(
            "sparklog_group_rebalances_total",
            "Rebalances that groups coordinated here have completed.",
            counts.get("rebalances", 0),
        ),
        counter(
            "sparklog_group_offsets_committed_total",
            "Offsets of partitions that groups coordinated here have committed.",
            counts.get("offsets_committed", 0),
        ),
        counter(
            "sparklog_group_offsets_expired_total",
            "Committed offsets that were removed after offsets.retention.minutes.",
            counts.get("offsets_expired", 0),
        ),
        counter(
            "sparklog_group_offsets_deleted_total",
            "Committed offsets that were removed on request, or with their topic.",
            counts.get("offsets_deleted", 0),
        ),
    ]
