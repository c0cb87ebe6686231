"""The closures that a compiled codec is made of: each reads and writes one piece of an entity.

Reading collects the fields of an entity as keyword arguments, so that those which a version lacks take the
class's own defaults. Writing appends to the output. Errors name the class and the field.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from sparklog.model.errors import ErrorCode, WireError
from sparklog.wire.primitives import Cursor, Output, Reader, Writer, append_uvarint, read_uvarint, skip_tags
from sparklog.wire.schema import SchemaField

ReadInto = Callable[[Cursor, dict[str, Any]], None]
"""Reads one or more fields of an entity into the keyword arguments that it will be made of."""
WriteFrom = Callable[[Any, Output], None]
"""Writes one or more fields of an entity."""

NUMBER_LETTERS: Final[Mapping[str, str]] = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "bool": "?",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}
"""The fixed-width types as ``struct`` spells them. Times are plain milliseconds, -1 for none."""

_ERROR_CODES: Final[Mapping[int, ErrorCode]] = {int(code): code for code in ErrorCode}


@dataclass(frozen=True, slots=True)
class Step:
    """Some fields of an entity that are read and written together."""

    read_into: ReadInto
    write_from: WriteFrom
    bytes_min: int


@dataclass(frozen=True, slots=True)
class Tag:
    """A tagged field; ``is_absent`` tells whether an entity has nothing to say there."""

    tag: int
    read_into: ReadInto
    write_from: WriteFrom
    is_absent: Callable[[Any], bool]


def entity_reader(message_class: type, reads: list[ReadInto]) -> Reader:
    def read_entity(cursor: Cursor) -> Any:
        values: dict[str, Any] = {}
        for read_into in reads:
            read_into(cursor, values)
        return message_class(**values)

    return read_entity


def entity_writer(writes: list[WriteFrom]) -> Writer:
    def write_entity(entity: Any, output: Output) -> None:
        for write_from in writes:
            write_from(entity, output)

    return write_entity


def read_one(name: str, read: Reader) -> ReadInto:
    def read_into(cursor: Cursor, values: dict[str, Any]) -> None:
        values[name] = read(cursor)

    return read_into


def write_one(name: str, write: Writer) -> WriteFrom:
    def write_from(entity: Any, output: Output) -> None:
        try:
            write(getattr(entity, name), output)
        except (WireError, TypeError, AttributeError, struct.error) as error:
            raise WireError(f"{type(entity).__name__}.{name}: {error}") from error

    return write_from


def error_code_of(number: int) -> ErrorCode:
    """A code that a newer peer may have and this release does not know is an unknown error."""
    return _ERROR_CODES.get(number, ErrorCode.unknown_server_error)


def run_step(fields: list[SchemaField]) -> Step:
    """Fixed-width fields that follow each other, read and written by one ``struct`` call."""
    names = tuple(field.name for field in fields)
    letters = "".join(NUMBER_LETTERS[field.kafka_type or ""] for field in fields)
    run = struct.Struct(">" + letters)
    errors = tuple(field.name for field in fields if field.kafka_type == "error_code")
    numbers_of: Callable[[Any], tuple[Any, ...]] = (
        attrgetter(*names) if len(names) > 1 else lambda entity: (getattr(entity, names[0]),)
    )

    def read_into(cursor: Cursor, values: dict[str, Any]) -> None:
        values.update(zip(names, run.unpack_from(cursor.buffer, cursor.position), strict=True))
        cursor.position += run.size
        for name in errors:
            values[name] = error_code_of(values[name])

    def write_from(entity: Any, output: Output) -> None:
        try:
            output.buffer += run.pack(*numbers_of(entity))
        except struct.error as error:
            raise WireError(_misfit(entity, names, letters)) from error

    return Step(read_into, write_from, run.size)


def _misfit(entity: Any, names: tuple[str, ...], letters: str) -> str:
    for name, letter in zip(names, letters, strict=True):
        value = getattr(entity, name)
        try:
            struct.pack(">" + letter, value)
        except struct.error as error:
            return f"{type(entity).__name__}.{name} is {value!r}: {error}"
    raise AssertionError(f"{entity} was refused as a whole but no field of {names} is at fault")


def refuse_loss(message_class: type, defaults: dict[str, Any]) -> WriteFrom:
    """Writes nothing; a value that matters and that the version has no field for is an error."""

    def check(entity: Any, output: Output) -> None:
        for name, default in defaults.items():
            value = getattr(entity, name)
            if value != default:
                raise WireError(
                    f"{message_class.__name__}.{name} is {value!r}, which this version cannot carry:"
                    " use a version that has the field, or leave it at its default"
                )

    return check


def _read_no_tags(cursor: Cursor, values: dict[str, Any]) -> None:
    if cursor.buffer[cursor.position] == 0:
        cursor.position += 1
    else:
        skip_tags(cursor)


def _write_no_tags(entity: Any, output: Output) -> None:
    output.buffer.append(0)


def tags_step(tags: list[Tag]) -> Step:
    """The tagged fields that end every flexible entity: known ones are read, others are skipped."""
    if not tags:
        return Step(_read_no_tags, _write_no_tags, 1)
    by_number = {tag.tag: tag for tag in tags}
    in_order = sorted(tags, key=lambda tag: tag.tag)

    def read_into(cursor: Cursor, values: dict[str, Any]) -> None:
        for _ in range(read_uvarint(cursor)):
            number, length = read_uvarint(cursor), read_uvarint(cursor)
            end = cursor.position + length
            tag = by_number.get(number)
            if tag is None:
                cursor.take(length)
                continue
            tag.read_into(cursor, values)
            if cursor.position != end:
                raise WireError(
                    f"tag {number} says {length} bytes but takes {cursor.position - end + length}"
                )

    def write_from(entity: Any, output: Output) -> None:
        present = [tag for tag in in_order if not tag.is_absent(entity)]
        append_uvarint(output.buffer, len(present))
        for tag in present:
            inner = Output()
            tag.write_from(entity, inner)
            append_uvarint(output.buffer, tag.tag)
            append_uvarint(output.buffer, len(inner.buffer))
            output.buffer += inner.buffer

    return Step(read_into, write_from, 1)
