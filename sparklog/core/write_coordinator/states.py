"""The states of an app, and the way from one to the next."""

import enum
from typing import Final

from sparklog.core.transition_table import Transition, states_before


class AppState(enum.IntEnum):
    """``IDLE``: no write is open. ``PREPARED_…``: the end is decided, and markers are being written.

    The numbers are those of the records in the log.
    """

    IDLE = 0
    OPEN = 1
    PREPARED_COMMIT = 2
    PREPARED_ABORT = 3


TRANSITIONS: Final = (
    Transition(AppState.IDLE, "OpenWrite of a version above the last committed one", AppState.OPEN),
    Transition(AppState.OPEN, "EndWrite commits", AppState.PREPARED_COMMIT),
    Transition(AppState.OPEN, "EndWrite aborts, no sign of life, a newer version", AppState.PREPARED_ABORT),
    Transition(AppState.PREPARED_COMMIT, "all markers are written", AppState.IDLE),
    Transition(AppState.PREPARED_ABORT, "all markers are written", AppState.IDLE),
)

STATES_BEFORE: Final = states_before(TRANSITIONS)
"""From which states an app comes into each state."""
