"""The states of a transactional id, with Kafka's numbers and names, and the way from one to the next."""

import enum
from collections.abc import Mapping
from typing import Final

from sparklog.core.transition_table import Transition, states_before


class TransactionState(enum.IntEnum):
    """``EMPTY``: no transaction since the id was initialised. ``ONGOING``: partitions have been added.

    ``PREPARE_…``: the end is decided, and markers are being written. ``COMPLETE_…``: every partition has its
    marker. ``DEAD`` and ``PREPARE_EPOCH_FENCE`` are Kafka's; here both are over within one write, so they are
    neither stored nor seen.
    """

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Kafka's name of the state."""
        return "".join(word.capitalize() for word in self.name.split("_"))


STATES_BY_LABEL: Final[Mapping[str, TransactionState]] = {state.label: state for state in TransactionState}

ENDING: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""The end is decided, and not all markers are known to be written."""

AT_REST: Final = frozenset(
    {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}
)
"""No transaction is open: the id may be initialised at once, and may expire."""

_MARKED: Final = "every partition has its marker"
_ADDED: Final = "partitions, or offsets of a group, are added"
_INITIALISED: Final = "InitProducerId"

TRANSITIONS: Final = (
    Transition(TransactionState.EMPTY, _ADDED, TransactionState.ONGOING),
    Transition(TransactionState.ONGOING, "EndTxn commits", TransactionState.PREPARE_COMMIT),
    Transition(
        TransactionState.ONGOING,
        "EndTxn aborts, InitProducerId fences, the time is over",
        TransactionState.PREPARE_ABORT,
    ),
    Transition(TransactionState.PREPARE_COMMIT, _MARKED, TransactionState.COMPLETE_COMMIT),
    Transition(TransactionState.PREPARE_ABORT, _MARKED, TransactionState.COMPLETE_ABORT),
    Transition(TransactionState.COMPLETE_COMMIT, _ADDED, TransactionState.ONGOING),
    Transition(TransactionState.COMPLETE_ABORT, _ADDED, TransactionState.ONGOING),
    Transition(TransactionState.COMPLETE_COMMIT, _INITIALISED, TransactionState.EMPTY),
    Transition(TransactionState.COMPLETE_ABORT, _INITIALISED, TransactionState.EMPTY),
)

STATES_BEFORE: Final = states_before(TRANSITIONS)
"""From which states a transactional id comes into each state."""
