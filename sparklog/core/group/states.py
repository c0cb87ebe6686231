"""The states of a group, with Kafka's names, and the way from one to the next.

    Empty ---first member joins---> PreparingRebalance <---member joins, changes, leaves, fails---+
      ^                                |         |                                               |
      +------no member is left---------+         +--all have joined, or time is over--+          |
                                                                                      v          |
    Stable <---the leader's assignment is in the log--- CompletingRebalance (waits for the leader)
      |                                                               |                          |
      +---------------------------------------------------------------+--------------------------+

A group that is not there is described as Dead; no group of the machine is in that state, because requests
wait in the shard while a group's deletion is being written.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class GroupState(StrEnum):
    """Kafka's name of each state, as DescribeGroups and ListGroups show it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


STATES_BEFORE: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
}
"""From which states a group comes into each state."""
