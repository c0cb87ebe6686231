"""The states of a group, with Kafka's names, and the way from one to the next.

A group that is not there is described as Dead; no group of the machine is in that state, because requests
wait in the shard while a group's deletion is being written.
"""

from enum import StrEnum
from typing import Final

from sparklog.core.transition_table import Transition, states_before


class GroupState(StrEnum):
    """Kafka's name of each state, as DescribeGroups and ListGroups show it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_CHANGE: Final = "a member joins, changes, leaves or fails"

TRANSITIONS: Final = (
    Transition(GroupState.EMPTY, "the first member joins", GroupState.PREPARING_REBALANCE),
    Transition(GroupState.PREPARING_REBALANCE, "no member is left", GroupState.EMPTY),
    Transition(
        GroupState.PREPARING_REBALANCE,
        "all members have joined, or the time is over",
        GroupState.COMPLETING_REBALANCE,
    ),
    Transition(GroupState.COMPLETING_REBALANCE, "the leader's assignment is in the log", GroupState.STABLE),
    Transition(GroupState.COMPLETING_REBALANCE, _CHANGE, GroupState.PREPARING_REBALANCE),
    Transition(GroupState.STABLE, _CHANGE, GroupState.PREPARING_REBALANCE),
)

STATES_BEFORE: Final = states_before(TRANSITIONS)
"""From which states a group comes into each state."""
