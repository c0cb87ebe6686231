"""One message of Kafka's formats 0 and 1, and sets of them, byte for byte.

      0  offset      i64   of the message; of a wrapper, that of its last inner message
      8  size        i32   bytes after this field
     12  CRC-32      u32   of everything from byte 16 to the end (not CRC-32C)
     16  format      i8    0 or 1; Kafka calls it magic
     17  attributes  i8    bits 0-2 codec, bit 3 log-append time (format 1)
     18  timestamp   i64   milliseconds, -1: none; only in format 1
         key length  i32   -1: null; then the key
         value length i32  -1: null; then the value

A message set is one message after the other, without a count. A message with a codec is a *wrapper*: its
value is a compressed message set, of one level only. Inner offsets are absolute in format 0. In format 1 they
count from the first, and the wrapper's offset minus the last of them is what they count from.

Sizes are checked against the bytes that are there, and the CRC before anything is decompressed. Bytes that
are not such messages raise ``BadMessage`` with Kafka's error code.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.records.envelope import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    Bytes,
)
from sparklog.records.envelope import MAGIC as BATCH_FORMAT

FORMATS: Final = (0, 1)
FORMAT_1: Final = 1

ENTRY: Final = struct.Struct(">qi")
"""Offset and size, before each message."""

_HEADS: Final = (struct.Struct(">Ibb"), struct.Struct(">Ibbq"))
"""CRC, format, attributes and, in format 1, timestamp; by format."""

_COVERED: Final = (struct.Struct(">bb"), struct.Struct(">bbq"))
"""What the CRC covers of a head, by format."""

_LENGTH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_CRC_BYTES: Final = 4
_FORMAT_POSITION: Final = 16
SIZE_MIN: Final = 14
"""The size of a format 0 message with neither key nor value."""


class BadMessage(CorruptBatch):
    """Bytes that are not a message, or not one that may be here; ``error`` is what a producer is answered."""

    def __init__(self, error: ErrorCode, why: str) -> None:
        super().__init__(why)
        self.error = error


class Message(NamedTuple):
    offset: int
    format: int
    attributes: int
    timestamp_ms: int
    """-1 for none, as always in format 0."""
    key: memoryview | None
    value: memoryview | None

    @property
    def codec(self) -> int:
        """Bits 0-2 of the attributes; 0 if the message is no wrapper."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.format == FORMAT_1 and bool(self.attributes & LOG_APPEND_TIME_BIT)


def messages_of(buffer: memoryview) -> Iterator[Message]:
    """The messages of a set that fills ``buffer``, which they share; BadMessage at the first that is bad."""
    position = 0
    while position < len(buffer):
        size_bytes = message_bytes(buffer, position)
        if size_bytes is None or size_bytes > len(buffer) - position:
            raise BadMessage(
                ErrorCode.corrupt_message,
                f"a message set of {len(buffer)} bytes ends within the message at byte {position}",
            )
        yield parse(buffer[position : position + size_bytes])
        position += size_bytes


def message_bytes(buffer: Bytes, position: int) -> int | None:
    """The bytes of the message at ``position``, as it claims; None if its size is not all there."""
    if len(buffer) - position < ENTRY.size:
        return None
    size: int = ENTRY.unpack_from(buffer, position)[1]
    if size < SIZE_MIN:
        raise BadMessage(
            ErrorCode.corrupt_message,
            f"the message at byte {position} claims {size} bytes, less than {SIZE_MIN}",
        )
    return ENTRY.size + size


def parse(message: memoryview) -> Message:
    """A whole message, whose size is that of ``message``."""
    form = message[_FORMAT_POSITION]
    if form not in FORMATS:
        error = ErrorCode.invalid_record if form == BATCH_FORMAT else ErrorCode.corrupt_message
        raise BadMessage(error, f"format {form} among messages of formats 0 and 1")
    offset, _ = ENTRY.unpack_from(message)
    (crc,) = _CRC.unpack_from(message, ENTRY.size)
    if crc != zlib.crc32(message[ENTRY.size + _CRC_BYTES :]):
        raise BadMessage(
            ErrorCode.corrupt_message,
            f"the CRC {crc:#010x} does not match the message at offset {offset}",
        )
    head = _HEADS[form]
    position = ENTRY.size + head.size
    if position > len(message):
        raise _ends_early(offset, len(message))
    _, _, attributes, *timestamp = head.unpack_from(message, ENTRY.size)
    key, position = _bytes_at(message, position, offset)
    value, position = _bytes_at(message, position, offset)
    if position != len(message):
        raise BadMessage(
            ErrorCode.invalid_record,
            f"{len(message) - position} bytes are left after the value of the message at offset {offset}",
        )
    return Message(offset, form, attributes, timestamp[0] if timestamp else NO_TIMESTAMP, key, value)


def build(
    form: int,
    offset: int,
    timestamp_ms: int,
    key: Bytes | None,
    value: Bytes | None,
    attributes: int = 0,
) -> bytes:
    """A message; format 0 has no timestamp, and none is written."""
    covered = (
        _COVERED[form].pack(form, attributes, timestamp_ms) if form else _COVERED[form].pack(form, attributes)
    )
    body = b"".join((covered, *_with_length(key), *_with_length(value)))
    return b"".join(
        (ENTRY.pack(offset, _CRC_BYTES + len(body)), _CRC.pack(zlib.crc32(body)), body),
    )


def _bytes_at(message: memoryview, position: int, offset: int) -> tuple[memoryview | None, int]:
    """A key or value, null for a negative length, and the position after it."""
    start = position + _LENGTH.size
    if start > len(message):
        raise _ends_early(offset, len(message))
    (length,) = _LENGTH.unpack_from(message, position)
    if length < 0:
        return None, start
    if length > len(message) - start:
        raise _ends_early(offset, len(message))
    return message[start : start + length], start + length


def _with_length(value: Bytes | None) -> tuple[Bytes, ...]:
    return (_LENGTH.pack(-1),) if value is None else (_LENGTH.pack(len(value)), value)


def _ends_early(offset: int, size_bytes: int) -> BadMessage:
    return BadMessage(
        ErrorCode.invalid_record,
        f"the message at offset {offset} has {size_bytes} bytes, which end within its fields",
    )
