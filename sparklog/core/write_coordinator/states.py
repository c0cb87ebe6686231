"""The states of an app. The numbers are those of the records in the log.

         OpenWrite              EndWrite, no sign of life, a newer version           all markers written
Idle(B) ----------> Open(v > B) -------------> PreparedCommit or PreparedAbort -------------> Idle(v or B)
"""

import enum


class AppState(enum.IntEnum):
    """``IDLE``: no write is open. ``PREPARED_…``: the end is decided, and markers are being written."""

    IDLE = 0
    OPEN = 1
    PREPARED_COMMIT = 2
    PREPARED_ABORT = 3
