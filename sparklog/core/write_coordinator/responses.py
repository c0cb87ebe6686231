"""The answers to requests about writes. An ``outcome`` counts only without an ``error``."""

import enum
from dataclasses import dataclass

from sparklog.core.write_coordinator.records import NO_VERSION
from sparklog.model.errors import ErrorCode

NO_PRODUCER_ID = -1


class OpenOutcome(enum.IntEnum):
    """What a task attempt is told. The numbers are those of the wire."""

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
    """Nothing was changed: ask again with a fresh number. From the machine to its shell alone."""


class EndOutcome(enum.IntEnum):
    """What a driver is told. The numbers are those of the wire."""

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
    """A winner is no finished member: ``producer_id`` says which."""
    LOST_TOPIC = 7
    """A topic of the write was deleted; everything is aborted."""
    NOT_VISIBLE_YET = 8
    """Committed, but some partition has no marker yet: ask again."""


@dataclass(frozen=True, slots=True)
class OpenedWrite:
    """``version``: the one that ALREADY_COMMITTED and OLDER_VERSION are about."""

    error: ErrorCode = ErrorCode.none
    outcome: OpenOutcome = OpenOutcome.MEMBER
    producer_id: int = NO_PRODUCER_ID
    version: int = NO_VERSION


@dataclass(frozen=True, slots=True)
class EndedWrite:
    """``version``: the one that ALREADY_COMMITTED and OLDER_VERSION are about. ``topic``: the lost one."""

    error: ErrorCode = ErrorCode.none
    outcome: EndOutcome = EndOutcome.COMMITTED
    version: int = NO_VERSION
    producer_id: int = NO_PRODUCER_ID
    topic: str = ""
