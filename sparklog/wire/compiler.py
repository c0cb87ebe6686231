"""Turns a schema and a message class into two closures: one that reads the message, one that writes it.

Runs of fixed-width fields become a single ``struct`` call; everything else is one closure a field. What is
special to a version (a field that is missing, moved into a tag, nullable) is settled here, once, so that
nothing is decided while messages fly.
"""

import dataclasses
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, get_args, get_type_hints

from sparklog.model.errors import ErrorCode, WireError
from sparklog.wire.extensions import EXTENSION_TYPES, EXTENSIONS, Direction
from sparklog.wire.primitives import (
    Cursor,
    Output,
    Reader,
    Writer,
    append_compact_length,
    append_int16_length,
    append_int32_length,
    append_uvarint,
    array_reader,
    array_writer,
    bytes_reader,
    bytes_writer,
    number_reader,
    number_writer,
    numbers_reader,
    numbers_writer,
    parts_reader,
    parts_writer,
    read_compact_length,
    read_int16_length,
    read_int32_length,
    read_uuid,
    read_uvarint,
    skip_tags,
    string_reader,
    string_writer,
    write_uuid,
)
from sparklog.wire.schema import Schema, SchemaField

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
class Entity:
    """A compiled entity: how to read and write one, and the fewest bytes that one can take."""

    read: Reader
    write: Writer
    bytes_min: int


@dataclass(frozen=True, slots=True)
class _Step:
    read_into: ReadInto
    write_from: WriteFrom
    bytes_min: int


@dataclass(frozen=True, slots=True)
class _Tag:
    """A tagged field; ``is_absent`` tells whether an entity has nothing to say there."""

    tag: int
    read_into: ReadInto
    write_from: WriteFrom
    is_absent: Callable[[Any], bool]


def compile_entity(schema: Schema, message_class: type, api_key: int, direction: Direction) -> Entity:
    """The codec of ``message_class`` as ``schema``'s version lays it out."""
    return _EntityCompiler(schema, message_class, api_key, direction).compile()


class _EntityCompiler:
    def __init__(self, schema: Schema, message_class: type, api_key: int, direction: Direction) -> None:
        self.schema = schema
        self.message_class = message_class
        self.api_key = api_key
        self.direction = direction
        self.hints = get_type_hints(message_class)
        self.inlined: frozenset[str] = getattr(message_class, "INLINED", frozenset())
        extensions = EXTENSIONS.get((api_key, direction, message_class.__name__), ())
        self.extensions = extensions if schema.flexible else ()

    def compile(self) -> Entity:
        steps = list(self._steps(self.schema))
        if self.schema.flexible:
            steps.append(_tags_step(list(self._tags())))
        writes = [step.write_from for step in steps]
        if self.direction == "request" and (missing := self._missing_fields()):
            writes.insert(0, _refuse_loss(self.message_class, missing))
        return Entity(
            _entity_reader(self.message_class, [step.read_into for step in steps]),
            _entity_writer(writes),
            sum(step.bytes_min for step in steps),
        )

    # Fields in order

    def _steps(self, schema: Schema) -> Iterator[_Step]:
        ordered = [field for field in schema.fields if field.tag is None]
        for is_fixed, group in groupby(ordered, _is_fixed_width):
            if is_fixed:
                yield _run_step(list(group))
            else:
                yield from map(self._field_step, group)

    def _field_step(self, field: SchemaField) -> _Step:
        read, write, bytes_min = self._field_codec(field)
        return _Step(_read_one(field.name, read), _write_one(field.name, write), bytes_min)

    def _field_codec(self, field: SchemaField) -> tuple[Reader, Writer, int]:
        if field.is_array:
            return self._array_codec(field)
        if field.entity is not None:
            entity = self._nested(field.name, field.entity)
            return entity.read, entity.write, entity.bytes_min
        assert field.kafka_type is not None
        return self._value_codec(field.kafka_type, nullable=field.nullable)

    def _array_codec(self, field: SchemaField) -> tuple[Reader, Writer, int]:
        flexible, nullable = self.schema.flexible, field.nullable
        read_length = read_compact_length if flexible else read_int32_length
        append_length = append_compact_length if flexible else append_int32_length
        length_bytes_min = 1 if flexible else 4
        if field.kafka_type is not None and field.kafka_type in NUMBER_LETTERS:
            letter = NUMBER_LETTERS[field.kafka_type]
            read = numbers_reader(read_length, letter, nullable=nullable)
            return read, numbers_writer(append_length, letter, nullable=nullable), length_bytes_min
        if field.entity is not None:
            entity = self._nested(field.name, field.entity)
            read_item, write_item, item_bytes_min = entity.read, entity.write, entity.bytes_min
        else:
            assert field.kafka_type is not None
            read_item, write_item, item_bytes_min = self._value_codec(field.kafka_type, nullable=False)
        read = array_reader(
            read_length, read_item, item_bytes_min, nullable=nullable, entities=field.entity is not None
        )
        return read, array_writer(append_length, write_item, nullable=nullable), length_bytes_min

    def _value_codec(self, kafka_type: str, *, nullable: bool) -> tuple[Reader, Writer, int]:
        flexible = self.schema.flexible
        if kafka_type == "uuid":
            return read_uuid, write_uuid, 16
        if kafka_type == "string":
            read_length = read_compact_length if flexible else read_int16_length
            append_length = append_compact_length if flexible else append_int16_length
            read, write = (
                string_reader(read_length, nullable=nullable),
                string_writer(append_length, nullable=nullable),
            )
            return read, write, 1 if flexible else 2
        read_length = read_compact_length if flexible else read_int32_length
        append_length = append_compact_length if flexible else append_int32_length
        if kafka_type == "records" and self.direction == "response":
            return parts_reader(read_length), parts_writer(append_length), 1 if flexible else 4
        if kafka_type in ("bytes", "records"):
            read, write = (
                bytes_reader(read_length, nullable=nullable),
                bytes_writer(append_length, nullable=nullable),
            )
            return read, write, 1 if flexible else 4
        letter = NUMBER_LETTERS[kafka_type]
        return number_reader(letter), number_writer(letter), struct.calcsize(">" + letter)

    def _nested(self, field_name: str, schema: Schema) -> Entity:
        return compile_entity(schema, _class_in(self.hints[field_name]), self.api_key, self.direction)

    # Tags

    def _tags(self) -> Iterator[_Tag]:
        for field in self.schema.fields:
            if field.tag is None:
                continue
            if field.name in self.inlined:
                yield self._inlined_tag(field)
            else:
                read, write, _ = self._field_codec(field)
                yield self._tag(field.tag, field.name, read, write)
        for extension in self.extensions:
            read, write = EXTENSION_TYPES[extension.type]
            yield self._tag(extension.tag, extension.field, read, write)

    def _tag(self, tag: int, name: str, read: Reader, write: Writer) -> _Tag:
        default = _default_of(self.message_class, name)
        return _Tag(
            tag, _read_one(name, read), _write_one(name, write), lambda obj: getattr(obj, name) == default
        )

    def _inlined_tag(self, field: SchemaField) -> _Tag:
        """An entity of its own on the wire, whose fields are the outer entity's in our class."""
        assert field.tag is not None
        assert field.entity is not None
        steps = [*self._steps(field.entity), _tags_step([])]
        defaults = {inner.name: _default_of(self.message_class, inner.name) for inner in field.entity.fields}

        def read_into(cursor: Cursor, values: dict[str, Any]) -> None:
            for step in steps:
                step.read_into(cursor, values)

        def write_from(entity: Any, output: Output) -> None:
            for step in steps:
                step.write_from(entity, output)

        def is_absent(entity: Any) -> bool:
            return all(getattr(entity, name) == default for name, default in defaults.items())

        return _Tag(field.tag, read_into, write_from, is_absent)

    # Fields that this version lacks

    def _missing_fields(self) -> dict[str, Any]:
        """Name and default of what a request would lose without being allowed to."""
        present = {extension.field for extension in self.extensions}
        for field in self.schema.fields:
            if field.name in self.inlined and field.entity is not None:
                present |= {inner.name for inner in field.entity.fields}
            else:
                present.add(field.name)
        ignorable: frozenset[str] = getattr(self.message_class, "IGNORABLE", frozenset())
        names = {field.name for field in dataclasses.fields(self.message_class)} - present - ignorable
        return {name: _default_of(self.message_class, name) for name in sorted(names)}


def _is_fixed_width(field: SchemaField) -> bool:
    return not field.is_array and field.kafka_type in NUMBER_LETTERS


def _class_in(hint: Any) -> type:
    """The message class in ``X``, ``X | None``, ``list[X]`` or ``list[X] | None``."""
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        return hint
    (inner,) = (argument for argument in get_args(hint) if argument is not type(None))
    return _class_in(inner)


def _default_of(message_class: type, name: str) -> Any:
    (field,) = (field for field in dataclasses.fields(message_class) if field.name == name)
    if field.default_factory is not MISSING:
        return field.default_factory()
    assert field.default is not MISSING, (
        f"{message_class.__name__}.{name} is not in every version: give it a default"
    )
    return field.default


# Closures


def _entity_reader(message_class: type, reads: list[ReadInto]) -> Reader:
    def read_entity(cursor: Cursor) -> Any:
        values: dict[str, Any] = {}
        for read_into in reads:
            read_into(cursor, values)
        return message_class(**values)

    return read_entity


def _entity_writer(writes: list[WriteFrom]) -> Writer:
    def write_entity(entity: Any, output: Output) -> None:
        for write_from in writes:
            write_from(entity, output)

    return write_entity


def _read_one(name: str, read: Reader) -> ReadInto:
    def read_into(cursor: Cursor, values: dict[str, Any]) -> None:
        values[name] = read(cursor)

    return read_into


def _write_one(name: str, write: Writer) -> WriteFrom:
    def write_from(entity: Any, output: Output) -> None:
        try:
            write(getattr(entity, name), output)
        except (WireError, TypeError, AttributeError, struct.error) as error:
            raise WireError(f"{type(entity).__name__}.{name}: {error}") from error

    return write_from


def error_code_of(number: int) -> ErrorCode:
    """A code that a newer peer may have and this release does not know is an unknown error."""
    return _ERROR_CODES.get(number, ErrorCode.unknown_server_error)


def _run_step(fields: list[SchemaField]) -> _Step:
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

    return _Step(read_into, write_from, run.size)


def _misfit(entity: Any, names: tuple[str, ...], letters: str) -> str:
    for name, letter in zip(names, letters, strict=True):
        value = getattr(entity, name)
        try:
            struct.pack(">" + letter, value)
        except struct.error as error:
            return f"{type(entity).__name__}.{name} is {value!r}: {error}"
    raise AssertionError(f"{entity} was refused as a whole but no field of {names} is at fault")


def _refuse_loss(message_class: type, defaults: dict[str, Any]) -> WriteFrom:
    """Writes nothing; a value that matters and that the version has no field for is an error."""

    def refuse_loss(entity: Any, output: Output) -> None:
        for name, default in defaults.items():
            value = getattr(entity, name)
            if value != default:
                raise WireError(
                    f"{message_class.__name__}.{name} is {value!r}, which this version cannot carry:"
                    " use a version that has the field, or leave it at its default"
                )

    return refuse_loss


def _read_no_tags(cursor: Cursor, values: dict[str, Any]) -> None:
    if cursor.buffer[cursor.position] == 0:
        cursor.position += 1
    else:
        skip_tags(cursor)


def _write_no_tags(entity: Any, output: Output) -> None:
    output.buffer.append(0)


def _tags_step(tags: list[_Tag]) -> _Step:
    """The tagged fields that end every flexible entity: known ones are read, others are skipped."""
    if not tags:
        return _Step(_read_no_tags, _write_no_tags, 1)
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

    return _Step(read_into, write_from, 1)
