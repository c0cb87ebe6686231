"""The checksum in the header of an LZ4 frame, which Kafka's format 0 has wrong (KAFKA-3160).

    magic 4 bytes | FLG | BD | content size 8 bytes, if FLG bit 3 | header checksum 1 byte | blocks

The checksum is the second byte of the XXH32 of what is between magic and checksum. Kafka's clients before
0.10 took the magic into it, and refuse frames that do not have this wrong checksum. Format 1 is as the LZ4
specification says.
"""

import struct
from typing import Final

from sparklog.records.envelope import Bytes

_MAGIC: Final = b"\x04\x22\x4d\x18"
_FLAGS_POSITION: Final = 4
_CONTENT_SIZE_BIT: Final = 1 << 3
_CONTENT_SIZE_BYTES: Final = 8
_FLAGS_AND_DESCRIPTOR_BYTES: Final = 2

_MASK: Final = 0xFFFF_FFFF
_PRIME_1: Final = 0x9E37_79B1
_PRIME_2: Final = 0x85EB_CA77
_PRIME_3: Final = 0xC2B2_AE3D
_PRIME_4: Final = 0x27D4_EB2F
_PRIME_5: Final = 0x1656_67B1
_WORD: Final = struct.Struct("<I")
_SHORT_BYTES_MAX: Final = 15


def with_right_checksum(frame: Bytes) -> Bytes:
    """A frame of format 0 as decoders want it, whatever its checksum is, as in Kafka."""
    return _with_checksum(frame, covered_from=_FLAGS_POSITION)


def with_checksum_of_format_0(frame: Bytes) -> Bytes:
    """A right frame with the checksum that readers of format 0 want."""
    return _with_checksum(frame, covered_from=0)


def _with_checksum(frame: Bytes, *, covered_from: int) -> Bytes:
    """``frame`` itself if it is none: its decoder says so."""
    if len(frame) <= _FLAGS_POSITION or bytes(frame[:_FLAGS_POSITION]) != _MAGIC:
        return frame
    position = _FLAGS_POSITION + _FLAGS_AND_DESCRIPTOR_BYTES
    if frame[_FLAGS_POSITION] & _CONTENT_SIZE_BIT:
        position += _CONTENT_SIZE_BYTES
    if len(frame) <= position:
        return frame
    changed = bytearray(frame)
    changed[position] = xxh32_of_few(bytes(frame[covered_from:position])) >> 8 & 0xFF
    return changed


def xxh32_of_few(data: bytes) -> int:
    """XXH32 with seed 0 of at most 15 bytes, more than which no header has."""
    if len(data) > _SHORT_BYTES_MAX:
        raise ValueError(f"{len(data)} bytes; this hashes at most {_SHORT_BYTES_MAX}")
    result = _PRIME_5 + len(data)
    position = 0
    while len(data) - position >= _WORD.size:
        result = (result + _WORD.unpack_from(data, position)[0] * _PRIME_3) & _MASK
        result = _rotated(result, 17) * _PRIME_4 & _MASK
        position += _WORD.size
    for byte in data[position:]:
        result = (result + byte * _PRIME_5) & _MASK
        result = _rotated(result, 11) * _PRIME_1 & _MASK
    result = (result ^ result >> 15) * _PRIME_2 & _MASK
    result = (result ^ result >> 13) * _PRIME_3 & _MASK
    return result ^ result >> 16


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> (32 - bits)) & _MASK
