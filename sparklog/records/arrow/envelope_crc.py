"""The CRC of the envelope that an *arrow* header of version 2 holds.

A batch's own CRC covers all of it, so a reader of a part cannot compare it. The header of version 2 therefore
has a CRC-32C of the envelope's bytes 21 to 60, and code that changes those bytes in a finished batch writes
that CRC, the header's, and the batch's. The numbers of the header are little-endian.
"""

import struct
from typing import Final

from crc32c import crc32c

from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import CUT_BIT

COVERED_FROM: Final = 21
"""Where the envelope's attributes begin."""

HEADER_POSITION: Final = 61
"""Where the header begins: after the envelope."""

VERSION_POSITION: Final = HEADER_POSITION + 1
FIRST_VERSION: Final = 2
"""The first version whose header has the CRC."""

HEADER_CRC_POSITION: Final = 8
HEADER_CRC_END: Final = 12
ENVELOPE_CRC_POSITION: Final = 48
FIXED_BYTES_MIN: Final = 56

_CUT_BYTE: Final = CUT_BIT >> 8
"""The bit that marks a batch as cut, in the first of the attributes' bytes."""

_U32: Final = struct.Struct("<I")
_LENGTH_POSITION: Final = 4


def envelope_crc(batch: bytes | bytearray | memoryview) -> int:
    """The CRC of the envelope's bytes 21 to 60, as they are now; of a batch that is cut, as it was stored."""
    covered = memoryview(batch)[COVERED_FROM:HEADER_POSITION]
    if covered[0] & _CUT_BYTE:
        covered = memoryview(bytes([covered[0] ^ _CUT_BYTE]) + covered[1:])
    return crc32c(covered)


def header_crc(header: bytes | bytearray | memoryview) -> int:
    """The CRC of a header's bytes but for those of the CRC itself."""
    view = memoryview(header)
    return crc32c(view[HEADER_CRC_END:], crc32c(view[:HEADER_CRC_POSITION]))


def write_envelope_crc(batch: bytearray | memoryview) -> None:
    """Write the envelope's CRC and the header's into an arrow batch; of version 1 nothing is written.

    CorruptBatch if the batch has no room for the header that it claims.
    """
    if len(batch) <= VERSION_POSITION or batch[VERSION_POSITION] < FIRST_VERSION:
        return
    header = memoryview(batch)[HEADER_POSITION:]
    length: int = _U32.unpack_from(header, _LENGTH_POSITION)[0] if len(header) >= FIXED_BYTES_MIN else 0
    if not FIXED_BYTES_MIN <= length <= len(header):
        raise CorruptBatch(f"an arrow header of {length} bytes in a payload of {len(header)}")
    _U32.pack_into(header, ENVELOPE_CRC_POSITION, envelope_crc(batch))
    _U32.pack_into(header, HEADER_CRC_POSITION, header_crc(header[:length]))
