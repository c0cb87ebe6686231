"""Turns a schema and a message class into two functions: one that reads the message, one that writes it.

What is special to a version (a field that is missing, moved into a tag, nullable) is settled here, once, so
that nothing is decided while messages fly. ``generate`` says how the functions are made.
"""

import dataclasses
import struct
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from itertools import groupby
from typing import Any, Final, get_args, get_type_hints

from sparklog.wire.codec_steps import NUMBER_LETTERS, One, Step, Tag, Tags, run_of
from sparklog.wire.extensions import EXTENSION_TYPES, EXTENSIONS, Direction
from sparklog.wire.generate import entity_reader, entity_writer, fields_reader
from sparklog.wire.primitives import (
    Cursor,
    Reader,
    Writer,
    append_compact_length,
    append_int16_length,
    append_int32_length,
    array_reader,
    array_writer,
    bytes_reader,
    bytes_writer,
    error_message_writer,
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
    string_reader,
    string_writer,
    write_uuid,
)
from sparklog.wire.schema import Schema, SchemaField

ERROR_MESSAGES: Final = frozenset({"error_message", "batch_index_error_message"})
"""Fields of responses that quote what a client sent."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A compiled entity: how to read and write one, and the fewest bytes that one can take."""

    read: Reader
    write: Writer
    bytes_min: int


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
        tags = Tags(list(self._tags())) if self.schema.flexible else None
        lost = self._missing_fields() if self.direction == "request" else {}
        return Entity(
            entity_reader(self.message_class, steps, tags),
            entity_writer(self.message_class, steps, tags, lost),
            sum(step.bytes_min for step in steps) + (tags is not None),
        )

    # Fields in order

    def _steps(self, schema: Schema) -> Iterator[Step]:
        ordered = [field for field in schema.fields if field.tag is None]
        for is_fixed, group in groupby(ordered, _is_fixed_width):
            if is_fixed:
                yield run_of(list(group))
            else:
                yield from map(self._field_step, group)

    def _field_step(self, field: SchemaField) -> Step:
        read, write, bytes_min = self._field_codec(field)
        if field.name in ERROR_MESSAGES and self.direction == "response":
            write = error_message_writer(write)
        return One(field.name, read, write, bytes_min)

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

    def _tags(self) -> Iterator[Tag]:
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

    def _tag(self, tag: int, name: str, read: Reader, write: Writer) -> Tag:
        steps = [One(name, read, write, 0)]
        return Tag(
            tag,
            fields_reader(steps),
            entity_writer(self.message_class, steps, None, {}),
            {name: _default_of(self.message_class, name)},
        )

    def _inlined_tag(self, field: SchemaField) -> Tag:
        """An entity of its own on the wire, whose fields are the outer entity's in our class."""
        assert field.tag is not None
        assert field.entity is not None
        steps = list(self._steps(field.entity))
        read_fields = fields_reader(steps)
        no_tags = Tags(())

        def read_into(cursor: Cursor, values: dict[str, Any]) -> None:
            read_fields(cursor, values)
            no_tags.read_into(cursor, values)

        return Tag(
            field.tag,
            read_into,
            entity_writer(self.message_class, steps, no_tags, {}),
            {inner.name: _default_of(self.message_class, inner.name) for inner in field.entity.fields},
        )

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
