"""The columns of a typed topic in all versions, from its document (docs/typed-topics.md)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import pyarrow as pa

from histories.soundness import DamagedBatchError

FORMAT: Final = 1
NONE: Final = -1
DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")
SCALARS: Final[Mapping[str, Any]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.utf8(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column in one version. ``kind`` is its type as in the document, without its history."""

    id: int
    name: str
    kind: Any

    @property
    def arrow_type(self) -> Any:
        return _arrow_type(self.kind)


@dataclass(frozen=True)
class TopicColumns:
    """``document`` is as the topic's replicas and ZooKeeper have it."""

    document: bytes

    @cached_property
    def _found(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.document)
        if found["format"] != FORMAT:
            raise DamagedBatchError(f"a document of columns of format {found['format']}")
        return found

    @property
    def version(self) -> int:
        """The newest."""
        return int(self._found["version"])

    @property
    def key(self) -> int:
        """The id of the key column; -1 without one."""
        return _id_or_none(self._found["key"])

    @property
    def timestamp(self) -> int:
        return _id_or_none(self._found["timestamp"])

    @lru_cache(maxsize=512)  # noqa: B019 (a few topics, which live as long as the program)
    def at(self, version: int) -> Mapping[int, Column]:
        """The columns of a version by their ids, which rise."""
        if not 1 <= version <= self.version:
            raise DamagedBatchError(f"version {version} of the columns; known are 1 to {self.version}")
        there = [one for one in self._found["columns"] if _is_in(one, version)]
        columns = [Column(one["id"], _at(one["name"], version), _kind(one["type"], version)) for one in there]
        return {column.id: column for column in sorted(columns, key=lambda column: column.id)}


def _id_or_none(found: int | None) -> int:
    return NONE if found is None else found


def _is_in(field: Mapping[str, Any], version: int) -> bool:
    dropped = field.get("dropped")
    return field.get("since", 1) <= version and (dropped is None or version < dropped)


def _at(found: Any, version: int) -> Any:
    """The value of a version, of one value or of a list of versions that began with one."""
    if isinstance(found, str):
        return found
    return [value for since, value in found if since <= version][-1]


def _kind(found: Any, version: int) -> Any:
    match found:
        case {"array": element}:
            return {"array": _kind(element, version)}
        case {"map": [key, value]}:
            return {"map": [_kind(key, version), _kind(value, version)]}
        case {"struct": [*fields]}:
            there = [one for one in fields if _is_in(one, version)]
            return {"struct": [{**one, "type": _kind(one["type"], version)} for one in there]}
    return _at(found, version)


def _arrow_type(kind: Any) -> Any:
    match kind:
        case {"array": element}:
            return pa.list_(_arrow_type(element))
        case {"map": [key, value]}:
            return pa.map_(_arrow_type(key), _arrow_type(value))
        case {"struct": [*fields]}:
            return pa.struct([pa.field(str(one["id"]), _arrow_type(one["type"])) for one in fields])
    if kind in SCALARS:
        return SCALARS[kind]
    digits = DECIMAL.fullmatch(kind)
    if digits is None:
        raise DamagedBatchError(f"a column of type {kind!r}")
    return pa.decimal128(int(digits[1]), int(digits[2]))


def nodes_and_buffers(arrow_type: Any) -> tuple[int, int]:
    """How many nodes and buffers a column of this type has in an Arrow message, its children included."""
    if pa.types.is_binary(arrow_type) or pa.types.is_string(arrow_type):
        return 1, 3
    if not pa.types.is_nested(arrow_type):
        return 1, 2
    own = 1 if pa.types.is_struct(arrow_type) else 2
    nodes, buffers = 1, own
    if pa.types.is_map(arrow_type):  # its entries are structs
        nodes, buffers = 2, own + 1
        children = [arrow_type.key_type, arrow_type.item_type]
    else:
        children = [arrow_type.field(number).type for number in range(arrow_type.num_fields)]
    for child in children:
        more_nodes, more_buffers = nodes_and_buffers(child)
        nodes, buffers = nodes + more_nodes, buffers + more_buffers
    return nodes, buffers
