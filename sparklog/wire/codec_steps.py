"""The pieces that a compiled codec is made of, and what they say when a value does not fit.

A *run* is fixed-width fields that follow each other, a *one* is any other field; ``generate`` writes them out
as source. Tagged fields are rare, and stay closures in a list.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sparklog.model.errors import ErrorCode, WireError
from sparklog.model.parts import parts_length
from sparklog.wire.primitives import Cursor, Output, Reader, Writer, append_uvarint, read_uvarint
from sparklog.wire.schema import SchemaField

NUMBER_LETTERS: Final[Mapping[str, str]] = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "bool": "?",
    "float64": "d",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}
"""The fixed-width types as ``struct`` spells them. Times are plain milliseconds, -1 for none."""

ERROR_CODES: Final[Mapping[int, ErrorCode]] = {int(code): code for code in ErrorCode}

UNKNOWN_ERROR: Final = ErrorCode.unknown_server_error
"""What a code is read as that a newer peer may have and this release does not know."""


@dataclass(frozen=True, slots=True)
class Run:
    """Fixed-width fields that follow each other; ``errors`` are those that are error codes."""

    names: tuple[str, ...]
    letters: str
    errors: tuple[str, ...]
    struct: struct.Struct

    @property
    def bytes_min(self) -> int:
        return self.struct.size


@dataclass(frozen=True, slots=True)
class One:
    """A field of any other type."""

    name: str
    read: Reader
    write: Writer
    bytes_min: int

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)


Step = Run | One


def run_of(fields: Sequence[SchemaField]) -> Run:
    letters = "".join(NUMBER_LETTERS[field.kafka_type or ""] for field in fields)
    return Run(
        tuple(field.name for field in fields),
        letters,
        tuple(field.name for field in fields if field.kafka_type == "error_code"),
        struct.Struct(">" + letters),
    )


# What does not fit


def named(entity: Any, name: str, error: Exception) -> WireError:
    """``error`` with the field in which it happened."""
    return WireError(f"{type(entity).__name__}.{name}: {error}")


def misfit(entity: Any, run: Run) -> WireError:
    """Which value of a run ``struct`` cannot pack."""
    for name, letter in zip(run.names, run.letters, strict=True):
        value = getattr(entity, name)
        try:
            struct.pack(">" + letter, value)
        except struct.error as error:
            return WireError(f"{type(entity).__name__}.{name} is {value!r}: {error}")
    raise AssertionError(f"{entity} was refused as a whole but no field of {run.names} is at fault")


def refuse(entity: Any, lost: Mapping[str, Any]) -> None:
    """Raise for a value that matters and that the version has no field for."""
    for name, default in lost.items():
        value = getattr(entity, name)
        if value != default:
            raise WireError(
                f"{type(entity).__name__}.{name} is {value!r}, which this version cannot carry:"
                " use a version that has the field, or leave it at its default"
            )


# Tags


@dataclass(frozen=True, slots=True)
class Tag:
    """A tagged field, which is written unless all of ``defaults`` are what the entity has."""

    tag: int
    read_into: Callable[[Cursor, dict[str, Any]], None]
    write_from: Callable[[Any, Output], None]
    defaults: dict[str, Any]

    def is_absent(self, entity: Any) -> bool:
        for name, default in self.defaults.items():  # noqa: SIM110 (half the time of a generator)
            if getattr(entity, name) != default:
                return False
        return True


class Tags:
    """The tagged fields that end every flexible entity: known ones are read, others are skipped."""

    def __init__(self, tags: Sequence[Tag]) -> None:
        self._by_number = {tag.tag: tag for tag in tags}
        self._in_order = sorted(tags, key=lambda tag: tag.tag)
        self.defaults = {name: default for tag in tags for name, default in tag.defaults.items()}
        """An entity that has all of these has nothing to say in its tags."""

    def read_into(self, cursor: Cursor, values: dict[str, Any]) -> None:
        for _ in range(read_uvarint(cursor)):
            number, length = read_uvarint(cursor), read_uvarint(cursor)
            end = cursor.position + length
            tag = self._by_number.get(number)
            if tag is None:
                cursor.take(length)
                continue
            tag.read_into(cursor, values)
            if cursor.position != end:
                raise WireError(
                    f"tag {number} says {length} bytes but takes {cursor.position - end + length}"
                )

    def write_from(self, entity: Any, output: Output) -> None:
        present = [tag for tag in self._in_order if not tag.is_absent(entity)]
        append_uvarint(output.buffer, len(present))
        for tag in present:
            inner = Output()
            tag.write_from(entity, inner)
            parts = inner.finish()
            append_uvarint(output.buffer, tag.tag)
            append_uvarint(output.buffer, parts_length(parts))
            output.add_parts(parts)
