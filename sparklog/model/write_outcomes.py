"""What the coordinator answers tasks and drivers of atomic writes. The numbers are those of the wire."""

import enum


class OpenOutcome(enum.IntEnum):
    """The answer to a task attempt."""

    MEMBER = 0
    """The attempt is a member, in the state that it asked for."""
    ALREADY_COMMITTED = 1
    """The version, or a later one, was committed: there is nothing to write."""
    OLDER_VERSION = 2
    """A later version is being written."""
    BEING_ENDED = 3
    """An earlier write is being ended: ask again."""
    MEMBER_ENDED = 4
    """The attempt is a member no longer: its rows are aborted, or will be."""
    TOO_MANY_MEMBERS = 5
    NEEDS_WRITE_NUMBER = 6
    """Nothing was changed: ask again with a fresh number. Only a coordinator's own broker gets this answer.
    """


class EndOutcome(enum.IntEnum):
    """The answer to a driver."""

    COMMITTED = 0
    """The commit is decided, and visible in every partition."""
    ABORTED = 1
    """The abort is decided, or there was nothing to abort."""
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
    """A ``WORKING`` member may still write. A ``FINISHED`` one may win: all its rows are acknowledged.

    An ``ABORTED`` one has withdrawn, or was silent for too long; it cannot become a member again.
    """

    WORKING = 0
    FINISHED = 1
    ABORTED = 2
