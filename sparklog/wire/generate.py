"""Writes the functions that read and write one kind of entity, as Python source, and compiles them.

A broker codes some six messages for every batch that is produced, nearly all of the same few kinds. Going
through a list of closures, one a field, took more than twice as long as a function that has the fields
written out, which is what this makes: runs of fixed-width fields become one ``struct`` call, every other
field one call. For a topic of a fetch request:

    def read(cursor):
        f_topic_id = read_0(cursor)
        f_partitions = read_1(cursor)
        if cursor.buffer[cursor.position]:
            values = {}
            read_tags(cursor, values)
            return make(topic_id=f_topic_id, partitions=f_partitions, **values)
        cursor.position += 1
        return make(topic_id=f_topic_id, partitions=f_partitions)

Fields that a version lacks are left to the class's own defaults. Errors while writing name the class and the
field. Nothing from the network gets into the source: only names and formats out of the schemas do.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from sparklog.model.errors import WireError
from sparklog.wire.codec_steps import ERROR_CODES, UNKNOWN_ERROR, One, Run, Step, Tags, misfit, named, refuse
from sparklog.wire.primitives import Cursor, Reader, Writer

ReadInto = Callable[[Cursor, dict[str, Any]], None]

WRITE_ERRORS: Final = (WireError, TypeError, AttributeError, struct.error)

Names = dict[str, Any]
"""What the generated source refers to, beside builtins."""


def entity_reader(message_class: type, steps: Sequence[Step], tags: Tags | None) -> Reader:
    """Reads one ``message_class``."""
    names: Names = {"make": message_class}
    body = list(_reads(steps, names))
    fields = ", ".join(f"{name}=f_{name}" for step in steps for name in step.names)
    if tags is not None:
        names["read_tags"] = tags.read_into
        body += [
            "if cursor.buffer[cursor.position]:",
            "    values = {}",
            "    read_tags(cursor, values)",
            f"    return make({fields + ', ' if fields else ''}**values)",
            "cursor.position += 1",
        ]
    body.append(f"return make({fields})")
    reader: Reader = _compile("cursor", body, names, message_class.__name__)
    return reader


def fields_reader(steps: Sequence[Step]) -> ReadInto:
    """Reads fields into a dictionary: for an entity whose fields are another's in our classes."""
    names: Names = {}
    body = list(_reads(steps, names))
    body += [f"values[{name!r}] = f_{name}" for step in steps for name in step.names]
    reader: ReadInto = _compile("cursor, values", body or ["pass"], names, "fields")
    return reader


def entity_writer(
    message_class: type, steps: Sequence[Step], tags: Tags | None, lost: dict[str, Any]
) -> Writer:
    """Writes one ``message_class``; ``lost`` are the fields that may not have another value than this."""
    names: Names = {"WRITE_ERRORS": WRITE_ERRORS, "struct_error": struct.error, "named": named}
    body: list[str] = []
    if lost:
        names["refuse"] = lambda entity: refuse(entity, lost)
        body += [f"if {' or '.join(_is_other(lost, names, 'lost'))}:", "    refuse(entity)"]
    body += _writes(steps, names)
    if tags is not None:
        names["write_tags"] = tags.write_from
        if tags.defaults:
            unequal = _is_other(tags.defaults, names, "tag")
            body += [f"if {' or '.join(unequal)}:", "    write_tags(entity, output)", "else:"]
            body += ["    output.buffer.append(0)"]
        else:
            body.append("output.buffer.append(0)")
    writer: Writer = _compile("entity, output", body or ["pass"], names, message_class.__name__)
    return writer


def _reads(steps: Sequence[Step], names: Names) -> Iterable[str]:
    for number, step in enumerate(steps):
        if isinstance(step, One):
            names[f"read_{number}"] = step.read
            yield f"f_{step.name} = read_{number}(cursor)"
            continue
        names[f"unpack_{number}"] = step.struct.unpack_from
        targets = "".join(f"f_{name}, " for name in step.names)
        yield f"{targets}= unpack_{number}(cursor.buffer, cursor.position)"
        yield f"cursor.position += {step.struct.size}"
        for name in step.errors:
            names["error_code_of"], names["unknown"] = ERROR_CODES.get, UNKNOWN_ERROR
            yield f"f_{name} = error_code_of(f_{name}, unknown)"


def _writes(steps: Sequence[Step], names: Names) -> Iterable[str]:
    for number, step in enumerate(steps):
        yield "try:"
        if isinstance(step, One):
            names[f"write_{number}"] = step.write
            yield f"    write_{number}(entity.{step.name}, output)"
            yield "except WRITE_ERRORS as error:"
            yield f"    raise named(entity, {step.name!r}, error) from error"
            continue
        names[f"pack_{number}"], names[f"misfit_{number}"] = step.struct.pack, _misfit_of(step)
        values = ", ".join(f"entity.{name}" for name in step.names)
        yield f"    output.buffer += pack_{number}({values})"
        yield "except struct_error as error:"
        yield f"    raise misfit_{number}(entity) from error"


def _misfit_of(run: Run) -> Callable[[Any], WireError]:
    return lambda entity: misfit(entity, run)


def _is_other(defaults: dict[str, Any], names: Names, prefix: str) -> list[str]:
    """One expression a field: whether it has another value than its default."""
    names |= {f"{prefix}_{name}": default for name, default in defaults.items()}
    return [
        f"entity.{name} is not None" if default is None else f"entity.{name} != {prefix}_{name}"
        for name, default in defaults.items()
    ]


def _compile(parameters: str, body: Iterable[str], names: Names, what: str) -> Any:
    lines = [f"def generated({parameters}):", *(f"    {line}" for line in body)]
    exec(compile("\n".join(lines), f"<codec of {what}>", "exec"), names)
    return names["generated"]
