"""The protocol's basic types: how a number, a string or a list's length lies in a frame.

Numbers are big-endian. "Legacy" versions give strings a 2-byte and bytes and arrays a 4-byte length, -1 for
null; "compact" (flexible) ones give length + 1 as an unsigned varint, 0 for null. Everything that is read is
checked against what is left of the frame *before* memory is taken for it, and entities are counted, because
an entity of three bytes costs a hundred in memory. Reading past the end shows as ``struct.error`` or
``IndexError``, which the codec turns into a ``WireError``.
"""

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from sparklog.model.errors import WireError
from sparklog.model.parts import FileSlice, Part, parts_length

ENTITIES_MAX: Final = 1_000_000
"""Entities (topics, partitions, ...) in one frame: some five times the partitions of the largest clusters."""

NUMBERS_OF_AN_ENTITY: Final = 8
"""Numbers of one array that count as an entity. The few replicas of a partition are part of theirs."""

PART_COPY_BYTES_MAX: Final = 4096
"""Records up to this size are copied next to the fields around them; larger ones stay a part of their own."""

ERROR_MESSAGE_CHARACTERS_MAX: Final = 2_000
"""Longer error messages are cut in responses."""

UUIDS_KEPT: Final = 4096
"""Topic ids come again and again, and making one takes ten times as long as finding it."""

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")


class Cursor:
    """A place in a frame that is being read, and how many more entities it may hold."""

    __slots__ = ("buffer", "entities_left", "position")

    def __init__(self, buffer: memoryview, position: int = 0) -> None:
        self.buffer = buffer
        self.position = position
        self.entities_left = ENTITIES_MAX

    def take(self, length: int) -> memoryview:
        """The next ``length`` bytes, not copied."""
        start = self.position
        if length > len(self.buffer) - start:
            raise WireError(f"a field of {length} bytes with {len(self.buffer) - start} left")
        self.position = start + length
        return self.buffer[start : start + length]

    def require(self, count: int, bytes_min: int) -> None:
        """Refuse an array of ``count`` that cannot fit into what is left."""
        left = len(self.buffer) - self.position
        if count * bytes_min > left:
            raise WireError(f"an array of {count} items of {bytes_min} bytes or more with {left} bytes left")

    def count_entities(self, count: int) -> None:
        self.entities_left -= count
        if self.entities_left < 0:
            raise WireError(f"more than {ENTITIES_MAX} entities in one frame")


class Output:
    """What is written so far: finished parts, and the buffer that grows."""

    __slots__ = ("buffer", "parts")

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.parts: list[Part] = []

    def add_parts(self, parts: Sequence[Part]) -> None:
        """File slices and large pieces go in as they are, for ``sendfile`` and without a copy."""
        for part in parts:
            if isinstance(part, FileSlice) or len(part) > PART_COPY_BYTES_MAX:
                self._finish_buffer()
                self.parts.append(part)
            else:
                self.buffer += part

    def finish(self) -> list[Part]:
        self._finish_buffer()
        return self.parts

    def _finish_buffer(self) -> None:
        if self.buffer:
            self.parts.append(memoryview(self.buffer))
            self.buffer = bytearray()


Reader = Callable[[Cursor], Any]
Writer = Callable[[Any, Output], None]


# Varints


def read_uvarint(cursor: Cursor) -> int:
    byte = cursor.buffer[cursor.position]
    cursor.position += 1
    if byte < 0x80:
        return byte
    value = byte & 0x7F
    for shift in (7, 14, 21, 28):
        byte = cursor.buffer[cursor.position]
        cursor.position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise WireError("an unsigned varint of more than five bytes")


def append_uvarint(buffer: bytearray, value: int) -> None:
    while value > 0x7F:
        buffer.append(value & 0x7F | 0x80)
        value >>= 7
    buffer.append(value)


# Lengths: a reader returns -1 for null, a writer takes None for it


def read_compact_length(cursor: Cursor) -> int:
    byte = cursor.buffer[cursor.position]
    if byte < 0x80:
        cursor.position += 1
        return byte - 1
    return read_uvarint(cursor) - 1


def read_int16_length(cursor: Cursor) -> int:
    return _read_length(cursor, _INT16)


def read_int32_length(cursor: Cursor) -> int:
    return _read_length(cursor, _INT32)


def _read_length(cursor: Cursor, number: struct.Struct) -> int:
    (length,) = number.unpack_from(cursor.buffer, cursor.position)
    cursor.position += number.size
    if length < -1:
        raise WireError(f"a negative length: {length}")
    return int(length)


def append_compact_length(buffer: bytearray, length: int | None) -> None:
    if length is None:
        buffer.append(0)
    elif length < 0x7F:
        buffer.append(length + 1)
    else:
        append_uvarint(buffer, length + 1)


def append_int16_length(buffer: bytearray, length: int | None) -> None:
    if length is not None and length > 0x7FFF:
        raise WireError(
            f"a string of {length} bytes is longer than 32767, the most that this version carries"
        )
    buffer += _INT16.pack(-1 if length is None else length)


def append_int32_length(buffer: bytearray, length: int | None) -> None:
    buffer += _INT32.pack(-1 if length is None else length)


# Numbers, strings, bytes, uuids


def number_reader(letter: str) -> Reader:
    """Reads one number of the type that ``struct`` calls ``letter``."""
    number = struct.Struct(">" + letter)

    def read_number(cursor: Cursor) -> Any:
        (value,) = number.unpack_from(cursor.buffer, cursor.position)
        cursor.position += number.size
        return value

    return read_number


def number_writer(letter: str) -> Writer:
    number = struct.Struct(">" + letter)

    def write_number(value: int, output: Output) -> None:
        output.buffer += number.pack(value)

    return write_number


def string_reader(read_length: Callable[[Cursor], int], *, nullable: bool) -> Reader:
    def read_string(cursor: Cursor) -> str | None:
        length = read_length(cursor)
        if length < 0:
            _check_null(nullable, "a string")
            return None
        return str(cursor.take(length), "utf-8")

    if read_length is not read_compact_length:
        return read_string

    def read_compact_string(cursor: Cursor) -> str | None:
        """Nearly every string has a length of one byte, and is read here without a further call."""
        start = cursor.position
        end = start + cursor.buffer[start]
        octets = cursor.buffer[start + 1 : end]
        if not start < end < start + 0x80 or len(octets) != end - start - 1:
            return read_string(cursor)
        cursor.position = end
        return str(octets, "utf-8")

    return read_compact_string


def string_writer(append_length: Callable[[bytearray, int | None], None], *, nullable: bool) -> Writer:
    def write_string(value: str | None, output: Output) -> None:
        if value is None:
            _check_null(nullable, "a string")
            append_length(output.buffer, None)
            return
        encoded = value.encode()
        append_length(output.buffer, len(encoded))
        output.buffer += encoded

    if append_length is not append_compact_length:
        return write_string

    def write_compact_string(value: str | None, output: Output) -> None:
        if value is None or len(encoded := value.encode()) >= 0x7F:
            write_string(value, output)
            return
        buffer = output.buffer
        buffer.append(len(encoded) + 1)
        buffer += encoded

    return write_compact_string


def error_message_writer(write_string: Writer) -> Writer:
    """Cuts what is too long before it calls ``write_string``.

    A message may quote a name of 32,767 bytes, which is the most that old versions have room for.
    """

    def write_error_message(value: str | None, output: Output) -> None:
        if value is not None and len(value) > ERROR_MESSAGE_CHARACTERS_MAX:
            value = value[: ERROR_MESSAGE_CHARACTERS_MAX - 1] + "…"
        write_string(value, output)

    return write_error_message


def bytes_reader(read_length: Callable[[Cursor], int], *, nullable: bool) -> Reader:
    def read_bytes(cursor: Cursor) -> memoryview | None:
        length = read_length(cursor)
        if length < 0:
            _check_null(nullable, "bytes")
            return None
        return cursor.take(length)

    return read_bytes


def bytes_writer(append_length: Callable[[bytearray, int | None], None], *, nullable: bool) -> Writer:
    def write_bytes(value: bytes | memoryview | None, output: Output) -> None:
        if value is None:
            _check_null(nullable, "bytes")
            append_length(output.buffer, None)
            return
        append_length(output.buffer, len(value))
        if len(value) <= PART_COPY_BYTES_MAX:
            output.buffer += value
        else:
            output.add_parts((value,))

    return write_bytes


def parts_reader(read_length: Callable[[Cursor], int]) -> Reader:
    """Records of a response: null and empty are the same to everyone who reads them."""

    def read_parts(cursor: Cursor) -> Sequence[Part]:
        length = read_length(cursor)
        return (cursor.take(length),) if length > 0 else ()

    return read_parts


def parts_writer(append_length: Callable[[bytearray, int | None], None]) -> Writer:
    def write_parts(value: Sequence[Part], output: Output) -> None:
        if not value:
            append_length(output.buffer, 0)
            return
        append_length(output.buffer, parts_length(value))
        output.add_parts(value)

    return write_parts


def read_uuid(cursor: Cursor) -> UUID:
    return _uuid_of(bytes(cursor.take(16)))


@lru_cache(UUIDS_KEPT)
def _uuid_of(octets: bytes) -> UUID:
    return UUID(bytes=octets)


def write_uuid(value: UUID, output: Output) -> None:
    output.buffer += value.bytes


# Arrays


def numbers_reader(read_length: Callable[[Cursor], int], letter: str, *, nullable: bool) -> Reader:
    """An array of one kind of number, unpacked at once."""
    item_bytes = struct.calcsize(">" + letter)

    def read_numbers(cursor: Cursor) -> list[Any] | None:
        count = read_length(cursor)
        if count < 0:
            _check_null(nullable, "an array")
            return None
        cursor.require(count, item_bytes)
        cursor.count_entities(count // NUMBERS_OF_AN_ENTITY)
        start = cursor.position
        cursor.position = start + count * item_bytes
        return list(struct.unpack_from(f">{count}{letter}", cursor.buffer, start))

    return read_numbers


def numbers_writer(
    append_length: Callable[[bytearray, int | None], None], letter: str, *, nullable: bool
) -> Writer:
    def write_numbers(value: Sequence[int] | None, output: Output) -> None:
        if value is None:
            _check_null(nullable, "an array")
            append_length(output.buffer, None)
            return
        append_length(output.buffer, len(value))
        output.buffer += struct.pack(f">{len(value)}{letter}", *value)

    return write_numbers


def array_reader(
    read_length: Callable[[Cursor], int],
    read_item: Reader,
    item_bytes_min: int,
    *,
    nullable: bool,
    entities: bool,
) -> Reader:
    def read_array(cursor: Cursor) -> list[Any] | None:
        count = read_length(cursor)
        if count < 0:
            _check_null(nullable, "an array")
            return None
        if not count:
            return []
        cursor.require(count, item_bytes_min)
        if entities:
            cursor.count_entities(count)
        if count == 1:
            return [read_item(cursor)]
        return [read_item(cursor) for _ in range(count)]

    return read_array


def array_writer(
    append_length: Callable[[bytearray, int | None], None], write_item: Writer, *, nullable: bool
) -> Writer:
    def write_array(value: Sequence[Any] | None, output: Output) -> None:
        if value is None:
            _check_null(nullable, "an array")
            append_length(output.buffer, None)
            return
        append_length(output.buffer, len(value))
        for item in value:
            write_item(item, output)

    return write_array


def _check_null(nullable: bool, kind: str) -> None:
    if not nullable:
        raise WireError(f"null for {kind} that may not be null")


# Tags


def skip_tags(cursor: Cursor) -> None:
    """Pass over tagged fields of which none is known."""
    for _ in range(read_uvarint(cursor)):
        read_uvarint(cursor)
        cursor.take(read_uvarint(cursor))
