"""Columns out of the JSON of a Spark schema (``StructType.json()``)."""

import json
import re
from typing import Any, Final

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import Array, Columns, DataType, Field, Map, Scalar, Struct
from sparklog.model.schema.paths import joined
from sparklog.model.schema.schema_limits import check_depth
from sparklog.model.schema.type_names import refuse_collation, scalar_type

COLLATIONS: Final = "__COLLATIONS"
"""Metadata of a field in which Spark notes the collations of its strings."""
_SCALAR: Final = re.compile(r"(\w+)\s*(?:\(\s*(\d{1,9})\s*(?:,\s*(\d{1,9})\s*)?\))?")
_COLLATED: Final = re.compile(r"string collate (\w+)", re.IGNORECASE)


def parse_spark_json(text: str) -> Columns:
    """The columns, without ids. Raises SchemaError with the column and the remedy."""
    try:
        schema = json.loads(text)
    except RecursionError:
        raise SchemaError("schema: the JSON is too deep; take levels out") from None
    except ValueError as error:
        raise SchemaError(f"schema: this is no JSON: {error}; give what df.schema.json() gives") from None
    found = _type("", schema, 0)
    if not isinstance(found, Struct):
        raise _malformed("", "a schema is of type struct")
    return found.fields


def _type(path: str, found: Any, depth: int) -> DataType:
    check_depth(path, depth)
    if isinstance(found, str):
        return scalar_of(path, found)
    match found:
        case {"type": "struct", "fields": [*fields]}:
            return Struct(tuple(_field(path, one, depth + 1) for one in fields))
        case {"type": "array", "elementType": element}:
            return Array(_type(joined(path, "element"), element, depth + 1))
        case {"type": "map", "keyType": key, "valueType": value}:
            of_key = _type(joined(path, "key"), key, depth + 1)
            return Map(of_key, _type(joined(path, "value"), value, depth + 1))
        case {"type": "udt"}:
            return scalar_type(path, "udt", None)
    raise _malformed(path, "its type is neither a name nor a struct, array or map")


def _field(parent: str, found: Any, depth: int) -> Field:
    match found:
        case {"name": str(name), "type": data_type}:
            path = joined(parent, name)
        case _:
            raise _malformed(parent, "each field has a name and a type")
    nullable, metadata = found.get("nullable", True), found.get("metadata", {})
    comment = metadata.get("comment", "") if isinstance(metadata, dict) else None
    if not isinstance(nullable, bool) or not isinstance(comment, str):
        raise _malformed(path, "nullable is true or false, metadata an object, and a comment a text")
    _check_collations(path, metadata.get(COLLATIONS))
    return Field(name, _type(path, data_type, depth), nullable, comment)


def _check_collations(path: str, collations: Any) -> None:
    if isinstance(collations, dict):
        for collation in collations.values():
            refuse_collation(path, str(collation))


def scalar_of(path: str, name: str) -> Scalar:
    """The type with this name, as Spark's JSON writes it. Raises SchemaError."""
    collated = _COLLATED.fullmatch(name)
    if collated:
        refuse_collation(path, collated.group(1))
        return Scalar("string")
    found = _SCALAR.fullmatch(name)
    if found is None:
        return scalar_type(path, name.split("(")[0].split(" ")[0], None)
    word, *numbers = found.groups()
    return scalar_type(path, word, [int(one) for one in numbers if one is not None] or None)


def _malformed(path: str, problem: str) -> SchemaError:
    where = f"column {path}" if path else "schema"
    return SchemaError(f"{where}: {problem}; give what df.schema.json() gives")
