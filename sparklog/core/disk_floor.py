"""The floor of a disk's free space, ``log.dirs.free.min.bytes``: clients may not write below it. PURE.

A disk is asked what it has free every ``ASK_MS`` at most, but for each batch near the floor. Between two
answers the batches of clients are subtracted. So a refusal always has a fresh answer. What followers and
other programs write meanwhile is less than ``NEAR_BYTES``, unless the disk takes 10 GB a second.
"""

from dataclasses import dataclass
from typing import Final

from sparklog.model.time import MonotonicMs

FREE_MIN_BYTES: Final = "log.dirs.free.min.bytes"

BY_SIZE: Final = -1
"""The setting's value for a floor that the disk's size gives."""

FLOOR_MAX_BYTES: Final = 1_000_000_000
FLOOR_SHARE: Final = 0.05

ASK_MS: Final = 100
NEAR_BYTES: Final = 1_000_000_000
"""So near to the floor each batch asks."""


def floor_bytes(setting: int, total_bytes: int) -> int:
    """The floor of a disk of ``total_bytes``; 0 if there is none."""
    return min(FLOOR_MAX_BYTES, int(total_bytes * FLOOR_SHARE)) if setting == BY_SIZE else setting


@dataclass(slots=True)
class FreeBytes:
    """What the disk under a log directory has free, by its last answer and by what clients wrote since."""

    _total_bytes: int = 0
    _free_bytes: int = -1
    _asked_ms: MonotonicMs | None = None

    def on_write(self, size_bytes: int, setting: int, now_ms: MonotonicMs) -> bool:
        """Whether ``size_bytes`` have room by what is known; False: ask the disk."""
        is_old = self._asked_ms is None or now_ms - self._asked_ms >= ASK_MS
        left_bytes = self._free_bytes - size_bytes
        if is_old or left_bytes - floor_bytes(setting, self._total_bytes) < NEAR_BYTES:
            self._asked_ms = now_ms
            return False
        self._free_bytes = left_bytes
        return True

    def on_answer(self, total_bytes: int, free_bytes: int, size_bytes: int) -> None:
        """The disk's answer, of before the write of ``size_bytes``."""
        self._total_bytes = total_bytes
        self._free_bytes = free_bytes - size_bytes
