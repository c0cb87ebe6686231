"""The changes that make room for a writer's columns in a topic: those that it lacks, and wider types."""

from collections.abc import Iterator
from dataclasses import replace

from sparklog.model.schema.change_texts import AddColumn, SchemaChange, WidenColumn
from sparklog.model.schema.data_types import Array, Columns, DataType, Field, Map, Scalar, Struct
from sparklog.model.schema.fitting import widens
from sparklog.model.schema.notation import without_inner_not_null
from sparklog.model.schema.paths import Path


def merge_changes(given: Columns, topic: Columns) -> list[SchemaChange]:
    """The changes of ``topic`` after which ``given`` fits, as far as changes can do it; none if it fits.

    Columns, and fields of structs, are found by their exact names.
    """
    return list(_of_fields((), given, topic))


def _of_fields(parent: Path, given: Columns, theirs: Columns) -> Iterator[SchemaChange]:
    by_name = {field.name: field for field in theirs}
    for field in given:
        known = by_name.get(field.name)
        if known is None:
            yield AddColumn(parent, _new(field))
        else:
            yield from _of_type((*parent, field.name), field.type, known.type)


def _of_type(path: Path, given: DataType, theirs: DataType) -> Iterator[SchemaChange]:
    match given, theirs:
        case (Scalar(), Scalar()) if widens(theirs, given):
            yield WidenColumn(path, given)
        case (Array(element), Array(of_topic)):
            yield from _of_type((*path, "element"), element, of_topic)
        case (Map(_, value), Map(_, topic_value)):
            yield from _of_type((*path, "value"), value, topic_value)
        case (Struct(fields), Struct(topic_fields)):
            yield from _of_fields(path, fields, topic_fields)


def _new(field: Field) -> Field:
    (loose,), _ = without_inner_not_null((field,))
    return replace(loose, nullable=True)
