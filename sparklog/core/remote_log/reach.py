"""The starts and ends of a partition's logs, on a leader's disk and in the remote store.

What is below a remote log's start is in no log any more. Its objects may be deleted once the manifest has
that start.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets from ``base_offset`` up to, not including, ``end_offset``."""

    base_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class SealedSegment:
    """A segment that no longer grows, on a disk or in a store. ``max_timestamp_ms`` is the greatest."""

    base_offset: int
    end_offset: int
    max_timestamp_ms: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LogReach:
    """A leader's log: its start for readers and on its disk, and the end of what is stable.

    ``epochs_from`` is the first offset whose leader epoch the log knows; None if it knows none.
    """

    start_offset: int
    local_start_offset: int
    last_stable_offset: int
    epochs_from: int | None


class Reach(Protocol):
    """The start and the end of a log in a store; ``end_offset`` is None if the log is empty."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class RemoteLog:
    """The first segments of a log in its store, in order; ``start_offset`` may be within the first one."""

    start_offset: int
    segments: tuple[SealedSegment, ...] = ()

    @property
    def end_offset(self) -> int | None:
        """The first offset that is not in the store; None if nothing is."""
        return self.segments[-1].end_offset if self.segments else None
