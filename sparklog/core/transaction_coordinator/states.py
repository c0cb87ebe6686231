"""The states of a transactional id, with Kafka's numbers and names.

    Empty ----> Ongoing ----> PrepareCommit ----> CompleteCommit
                   |                                    |
                   +--------> PrepareAbort -----> CompleteAbort ----> Ongoing ...

InitProducerId leads from Empty and from both Complete states to Empty.
"""

import enum
from collections.abc import Mapping
from typing import Final


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
