"""The floor of a disk's free space, ``log.dirs.free.min.bytes``: clients may not write below it. PURE."""

from typing import Final

FREE_MIN_BYTES: Final = "log.dirs.free.min.bytes"

BY_SIZE: Final = -1
"""The setting's value for a floor that the disk's size gives."""

FLOOR_MAX_BYTES: Final = 1_000_000_000
FLOOR_SHARE: Final = 0.05


def floor_bytes(setting: int, total_bytes: int) -> int:
    """The floor of a disk of ``total_bytes``; 0 if there is none."""
    return min(FLOOR_MAX_BYTES, int(total_bytes * FLOOR_SHARE)) if setting == BY_SIZE else setting
