"""Frames: a 4-byte big-endian size, then that many bytes. The size does not count itself.

Cutting a stream into frames is the work of whoever owns the memory (``sparklog.network.streams.inbound``):
a size below 0 or above the limit is refused there before anything is allocated.
"""

import struct
from typing import Final

FRAME_PREFIX: Final = struct.Struct(">i")
"""The size of what follows, itself not counted."""
assert FRAME_PREFIX.size == 4
