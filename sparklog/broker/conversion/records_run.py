"""How far a part of a log has batches of *records* alone, of which a plain client is given the bytes on disk.

Clients that write a record at a time leave thousands of batches in a megabyte, and each of their envelopes
must be looked at. They are read 64 KiB at a time, and without an object for each. That takes a tenth of the
time of a read and a header for each batch. Of large batches the envelopes alone are read.
"""

import struct
from typing import Final

from sparklog.model.parts import Part, part_length, read_part
from sparklog.records.envelope import ARROW_BIT, ENVELOPE_BYTES, LENGTH_MIN, LENGTH_OVERHEAD, MAGIC, Bytes

CHUNK_BYTES: Final = 64 * 1024
SMALL_BYTES: Final = 4 * 1024
"""A batch that ends at most so many bytes beyond those read is taken for one of many small ones."""

_ENVELOPE: Final = struct.Struct(">qi4xb4xhi30xi")
"""Base offset, length, magic, attributes, last offset delta and record count of an envelope."""
assert _ENVELOPE.size == ENVELOPE_BYTES


def records_end(part: Part, position: int) -> int:
    """Where the run of whole batches of records from ``position`` on ends.

    That is the end of ``part``, or the position of a batch that must be looked at: of another kind,
    malformed, or not whole. OSError if ``part`` cannot be read.
    """
    length = part_length(part)
    read_bytes = ENVELOPE_BYTES
    while position < length:
        buffer = read_part(part, position, min(read_bytes, length - position))
        passed = _pass_records(buffer, length - position)
        if passed <= len(buffer) - ENVELOPE_BYTES or not passed:
            return position + passed
        position += passed
        read_bytes = CHUNK_BYTES if passed - len(buffer) <= SMALL_BYTES else ENVELOPE_BYTES
    return position


def _pass_records(buffer: Bytes, end: int) -> int:
    """The position after the last batch of records whose envelope is in ``buffer``.

    Every batch up to there is one, and ends at ``end`` or before. It may end beyond ``buffer``.
    """
    position, last_envelope = 0, len(buffer) - ENVELOPE_BYTES
    while position <= last_envelope:
        base_offset, length, magic, attributes, last_delta, count = _ENVELOPE.unpack_from(buffer, position)
        after = position + LENGTH_OVERHEAD + length
        is_sound = magic == MAGIC and length >= LENGTH_MIN and base_offset >= 0 and last_delta >= 0 <= count
        if not is_sound or attributes & ARROW_BIT or after > end:
            break
        position = after
    return position
