"""Types of columns in Arrow's words, and back; they are those in which Spark hands rows over.

Everything but the key of a map may be null, whatever a column's NOT NULL says: that is checked by counts.
"""

from typing import Final

import pyarrow as pa

from sparklog.model.errors import SchemaError
from sparklog.model.schema.data_types import (
    DECIMAL,
    DECIMAL_DIGITS_MAX,
    Array,
    Columns,
    DataType,
    Field,
    Map,
    Scalar,
    Struct,
)
from sparklog.model.schema.paths import joined
from sparklog.records.arrow.columns import ArrowColumn

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_SCALARS: Final = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": pa.timestamp("us"),
}
_NAMES: Final = {kind: name for name, kind in _SCALARS.items()} | {
    pa.large_string(): "string",
    pa.large_binary(): "binary",
}
_WITH_OFFSETS: Final = ("string", "binary")


def arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type of a column, with the names that its fields have."""
    match data_type:
        case Scalar(name, precision, scale):
            return pa.decimal128(precision, scale) if name == DECIMAL else _SCALARS[name]
        case Array(element):
            return pa.list_(pa.field("element", arrow_type(element)))
        case Map(key, value):
            return pa.map_(
                pa.field("key", arrow_type(key), nullable=False), pa.field("value", arrow_type(value))
            )
        case Struct(fields):
            return pa.struct([pa.field(field.name, arrow_type(field.type)) for field in fields])


def arrow_column(field: Field) -> ArrowColumn:
    """The column in a message, with the number of its type's nodes and buffers."""
    return ArrowColumn(pa.field(field.name, arrow_type(field.type)), *_nodes_and_buffers(field.type))


def _nodes_and_buffers(data_type: DataType) -> tuple[int, int]:
    match data_type:
        case Scalar(name):
            return 1, 3 if name in _WITH_OFFSETS else 2
        case Array(element):
            own, parts = (1, 2), [element]
        case Map(key, value):
            own, parts = (2, 3), [key, value]  # a list of structs
        case Struct(fields):
            own, parts = (1, 1), [field.type for field in fields]
    counts = [own, *map(_nodes_and_buffers, parts)]
    return sum(nodes for nodes, _ in counts), sum(buffers for _, buffers in counts)


def columns_of_arrow(schema: pa.Schema) -> Columns:
    """The columns of an Arrow table, without ids. Raises SchemaError for a type that no topic has."""
    return tuple(Field(field.name, _data_type(field.name, field.type), field.nullable) for field in schema)


def _data_type(path: str, kind: pa.DataType) -> DataType:
    types = pa.types
    if kind in _NAMES:
        return Scalar(_NAMES[kind])
    if types.is_timestamp(kind):
        return Scalar("timestamp_ntz" if kind.tz is None else "timestamp")
    if types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision <= DECIMAL_DIGITS_MAX:
        return Scalar(DECIMAL, kind.precision, kind.scale)
    if types.is_list(kind) or types.is_large_list(kind):
        return Array(_data_type(joined(path, "element"), kind.value_type))
    if types.is_map(kind):
        of_key = _data_type(joined(path, "key"), kind.key_type)
        return Map(of_key, _data_type(joined(path, "value"), kind.item_type))
    if types.is_struct(kind):
        fields = [kind.field(nth) for nth in range(kind.num_fields)]
        return Struct(
            tuple(
                Field(field.name, _data_type(joined(path, field.name), field.type), field.nullable)
                for field in fields
            )
        )
    raise SchemaError(f"column {path}: no topic has Arrow's type {kind}; cast it to a type that one has")
