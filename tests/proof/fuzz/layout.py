"""Messages as trees of plain values, written and read by Kafka's schemas alone.

This is a second, slow codec beside ``sparklog.wire.codec``. It writes what our own codec refuses to write,
and it judges what our own codec has written. A tree is a dictionary by field names; an array is a list, null
is None, and a uuid, string, bytes or records field is bytes. A tagged field that is absent from the tree is
absent from the frame.
"""

import struct
from dataclasses import dataclass, field
from typing import Any, Final

from sparklog.wire.schema import Schema, SchemaField

Tree = dict[str, Any]

FIXED: Final = {
    "bool": ">B",
    "int8": ">b",
    "int16": ">h",
    "int32": ">i",
    "int64": ">q",
    "uint16": ">H",
    "uint32": ">I",
    "float64": ">d",
    "error_code": ">h",
    "timedelta_i32": ">i",
    "timedelta_i64": ">q",
    "datetime_i64": ">q",
}
"""The ``struct`` format of every type with a fixed width, but for uuid."""

LENGTH_BYTES: Final = {"string": 2, "bytes": 4, "records": 4}
"""The width of the length of every other type, in versions that are not flexible."""

UUID_BYTES: Final = 16
RAW_TAGS: Final = "raw tags"
"""Key of a tree under which it has further tagged fields: pairs of a tag and its bytes."""


class LayoutError(Exception):
    """The bytes are not a message of the schema."""


@dataclass(frozen=True, slots=True)
class LengthMark:
    """Where a length or count is in a frame, and how many bytes it takes; 0: an unsigned varint."""

    position: int
    width: int


@dataclass(slots=True)
class Written:
    """A message under construction."""

    octets: bytearray = field(default_factory=bytearray)
    lengths: list[LengthMark] = field(default_factory=list)
    """The lengths of strings, byte fields and arrays, in the order of the frame."""


def write_tree(schema: Schema, tree: Tree, out: Written) -> None:
    """Append the message to ``out``, tags included."""
    for one in schema.fields:
        if one.tag is None:
            _write_field(one, tree[one.name], out, flexible=schema.flexible)
    if schema.flexible:
        _write_tags(schema, tree, out)


def _write_field(one: SchemaField, value: Any, out: Written, *, flexible: bool) -> None:
    if not one.is_array:
        _write_item(one, value, out, flexible=flexible)
        return
    _write_length(None if value is None else len(value), out, width=0 if flexible else 4)
    for item in value or ():
        _write_item(one, item, out, flexible=flexible)


def _write_item(one: SchemaField, value: Any, out: Written, *, flexible: bool) -> None:
    if one.entity is not None:
        write_tree(one.entity, value, out)
    elif one.kafka_type in FIXED:
        out.octets += struct.pack(FIXED[one.kafka_type], value)
    elif one.kafka_type == "uuid":
        out.octets += value
    else:
        width = LENGTH_BYTES[one.kafka_type or ""]
        _write_length(None if value is None else len(value), out, width=0 if flexible else width)
        out.octets += value or b""


def _write_length(length: int | None, out: Written, *, width: int) -> None:
    out.lengths.append(LengthMark(len(out.octets), width))
    if width == 0:
        out.octets += uvarint(0 if length is None else length + 1)
    else:
        out.octets += (-1 if length is None else length).to_bytes(width, "big", signed=True)


def _write_tags(schema: Schema, tree: Tree, out: Written) -> None:
    tags: list[tuple[int, bytes]] = list(tree.get(RAW_TAGS, ()))
    for one in schema.fields:
        if one.tag is not None and one.name in tree:
            inner = Written()
            _write_field(one, tree[one.name], inner, flexible=True)
            tags.append((one.tag, bytes(inner.octets)))
    out.octets += uvarint(len(tags))
    for tag, octets in sorted(tags):
        out.octets += uvarint(tag) + uvarint(len(octets)) + octets


def uvarint(value: int) -> bytes:
    """An unsigned varint: seven bits a byte, lowest first."""
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def read_tree(schema: Schema, octets: bytes, *, is_padded: bool = False) -> Tree:
    """The message that ``octets`` are, all of them unless it may be padded; LayoutError if they are not."""
    reader = _Reader(octets)
    tree = reader.tree(schema)
    if reader.position != len(octets) and not is_padded:
        raise LayoutError(f"{len(octets) - reader.position} bytes behind the body")
    return tree


class _Reader:
    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        self.position = 0

    def tree(self, schema: Schema) -> Tree:
        tree = {one.name: self.field(one, schema) for one in schema.fields if one.tag is None}
        return tree | self._tags(schema) if schema.flexible else tree

    def field(self, one: SchemaField, schema: Schema) -> Any:
        if not one.is_array:
            return self._item(one, flexible=schema.flexible)
        count = self._length(one, width=0 if schema.flexible else 4)
        return None if count is None else [self._item(one, flexible=schema.flexible) for _ in range(count)]

    def _item(self, one: SchemaField, *, flexible: bool) -> Any:
        if one.entity is not None:
            return self.tree(one.entity)
        if one.kafka_type in FIXED:
            number = struct.Struct(FIXED[one.kafka_type])
            return number.unpack(self._take(number.size, one.name))[0]
        if one.kafka_type == "uuid":
            return self._take(UUID_BYTES, one.name)
        width = LENGTH_BYTES[one.kafka_type or ""]
        length = self._length(one, width=0 if flexible else width)
        octets = None if length is None else self._take(length, one.name)
        if one.kafka_type == "string" and octets is not None:
            self._check_text(one, octets)
        return octets

    @staticmethod
    def _check_text(one: SchemaField, octets: bytes) -> None:
        try:
            octets.decode()
        except UnicodeDecodeError as error:
            raise LayoutError(f"{one.name} is no UTF-8: {error}") from None

    def _length(self, one: SchemaField, *, width: int) -> int | None:
        if width == 0:
            length = self._uvarint() - 1
        else:
            length = int.from_bytes(self._take(width, one.name), "big", signed=True)
        if length == -1 and (one.nullable or one.kafka_type == "records"):
            return None
        if length < 0:
            raise LayoutError(f"{one.name} has length {length}")
        return length

    def _tags(self, schema: Schema) -> Tree:
        known = {one.tag: one for one in schema.fields if one.tag is not None}
        tree: Tree = {}
        last = -1
        for _ in range(self._uvarint()):
            tag, length = self._uvarint(), self._uvarint()
            if tag <= last:
                raise LayoutError(f"tag {tag} follows tag {last}")
            last, end = tag, self.position + length
            if tag in known:
                tree[known[tag].name] = self.field(known[tag], schema)
            else:
                self._take(length, f"tag {tag}")
            if self.position != end:
                raise LayoutError(f"tag {tag} ends at byte {self.position}, and announced {end}")
        return tree

    def _uvarint(self) -> int:
        value = shift = 0
        while True:
            (octet,) = self._take(1, "a varint")
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise LayoutError(f"a varint of more than five bytes at byte {self.position}")

    def _take(self, length: int, what: str) -> bytes:
        octets = self.octets[self.position : self.position + length]
        if len(octets) != length:
            raise LayoutError(f"{what} needs {length} bytes, and {len(octets)} are left")
        self.position += length
        return octets
