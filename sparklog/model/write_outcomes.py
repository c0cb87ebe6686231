"""What tasks and drivers of atomic writes are told. The numbers are those of the wire."""

import enum


class OpenOutcome(enum.IntEnum):
    """To a task attempt."""

    MEMBER = 0
    """It is a member, in the state for which it asked."""
    ALREADY_COMMITTED = 1
    """Its version, or a later one, was committed: there is nothing to write."""
    OLDER_VERSION = 2
    """A later version is being written."""
    BEING_ENDED = 3
    """An earlier write is being ended: ask again."""
    MEMBER_ENDED = 4
    """It is a member no longer: what it wrote is, or will be, aborted."""
    TOO_MANY_MEMBERS = 5
    NEEDS_WRITE_NUMBER = 6
    """Nothing was changed: ask again with a fresh number. From a coordinator to its broker alone."""


class EndOutcome(enum.IntEnum):
    """To a driver."""

    COMMITTED = 0
    """Decided, and visible in every partition."""
    ABORTED = 1
    """Decided, or there was nothing to abort."""
    ALREADY_COMMITTED = 2
    OLDER_VERSION = 3
    BEING_ENDED = 4
    """Another decision is being carried out: ask again."""
    NOT_OPEN = 5
    """No such write is open: it was aborted, by its time-out or otherwise."""
    LOST_MEMBER = 6
    """A winner is no finished member."""
    LOST_TOPIC = 7
    """A topic of the write was deleted; everything is aborted."""
    NOT_VISIBLE_YET = 8
    """Committed, but some partition has no marker yet: ask again."""


class MemberState(enum.IntEnum):
    """``WORKING``: it may still write. ``FINISHED``: all that it wrote is acknowledged, and it may win.

    ``ABORTED``: it has withdrawn, or was silent for too long; it cannot come back.
    """

    WORKING = 0
    FINISHED = 1
    ABORTED = 2
