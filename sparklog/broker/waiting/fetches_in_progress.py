"""The followers' fetches that are inside this broker, with their times of arrival (KIP-501).

A leader judges its followers by the time of their last fetch. While the leader stalls (a slow disk, a lock
held long), their fetches wait inside it unprocessed. Removing them from the ISR would leave only the stalled
leader in it. A follower with a fetch in progress therefore counts as having fetched when that fetch arrived.
"""

import itertools
from collections.abc import Mapping
from typing import Final

from sparklog.model.ids import BrokerId
from sparklog.model.time import MonotonicMs

IN_PROGRESS_MAX_MS: Final = 300_000
"""An older fetch was never taken out; its follower has long given up waiting."""


class FetchesInProgress:
    """Used by any number of threads; every change is one operation on a dictionary."""

    def __init__(self) -> None:
        self._tokens = itertools.count(1)
        self._inside: dict[int, tuple[BrokerId, MonotonicMs]] = {}

    def enter(self, follower: BrokerId, arrived_ms: MonotonicMs) -> int:
        token = next(self._tokens)
        self._inside[token] = (follower, arrived_ms)
        return token

    def leave(self, token: int) -> None:
        """The fetch was answered. Idempotent."""
        self._inside.pop(token, None)

    def arrivals(self, now_ms: MonotonicMs) -> Mapping[BrokerId, MonotonicMs]:
        """The arrival of the oldest fetch of each follower."""
        oldest: dict[BrokerId, MonotonicMs] = {}
        for token, (follower, arrived_ms) in list(self._inside.items()):
            if now_ms - arrived_ms > IN_PROGRESS_MAX_MS:
                self.leave(token)
            else:
                oldest[follower] = min(arrived_ms, oldest.get(follower, arrived_ms))
        return oldest
