"""The columns of a typed topic's ``.arrow`` object: nulls, least and greatest value in each record batch."""

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa
from crc32c import crc32c

from sparklog.cli.logs.dump.rows import COLUMN_INDENT
from sparklog.records.remote_segment.arrow_object import ArrowObject, Read
from sparklog.records.remote_segment.column_statistics import ColumnStatistics, OneColumn
from sparklog.records.remote_segment.ipc_file import HEAD
from sparklog.records.remote_segment.typed_message import ID_KEY

_DOUBLE: Final = struct.Struct("<d")
_DIGITS: Final = Context(prec=76)


@dataclass(frozen=True, slots=True)
class StoredColumnRow:
    """One column in one record batch."""

    name: str
    id: int
    null_count: int
    least: object
    greatest: object

    def text(self) -> str:
        least, greatest = ("none" if one is None else one for one in (self.least, self.greatest))
        return (
            f"{COLUMN_INDENT} column: {self.name} id: {self.id} nulls: {self.null_count} "
            f"min: {least} max: {greatest}"
        )

    def data(self) -> dict[str, Any]:
        return {
            "column": self.name,
            "id": self.id,
            "nulls": self.null_count,
            "min": self.least,
            "max": self.greatest,
        }


def file_schema_of(read: Read, opened: ArrowObject) -> pa.Schema | None:
    """The schema at the start of the object; None if it is damaged."""
    if not opened.blocks:
        return None
    head = read(0, opened.blocks[0].offset)
    return pa.ipc.read_schema(pa.py_buffer(head[len(HEAD) :])) if crc32c(head) == opened.head_crc else None


def stored_columns(
    schema: pa.Schema, row_count: int, columns: ColumnStatistics | None
) -> Iterator[StoredColumnRow]:
    """A row for each column, in the file's order; none for a record batch without statistics of columns."""
    if columns is None:
        return
    absent = OneColumn(row_count, None, None)
    for field in schema:
        number = (field.metadata or {}).get(ID_KEY.encode())
        if number is not None:
            one = columns.get(int(number), absent)
            bounds = (_shown(field.type, bound) for bound in (one.least, one.greatest))
            yield StoredColumnRow(field.name, int(number), one.null_count, *bounds)


def _shown(kind: pa.DataType, bound: bytes | None) -> object:
    """A number; a decimal, a text or the hexadecimal digits of bytes as text."""
    if bound is None:
        return None
    types = pa.types
    if types.is_string(kind) or types.is_binary(kind):
        try:
            return bound.decode() if types.is_string(kind) else f"0x{bound.hex()}"
        except UnicodeDecodeError:  # the greatest, rounded up
            return f"0x{bound.hex()}"
    if types.is_floating(kind):
        if len(bound) != _DOUBLE.size:
            return f"0x{bound.hex()}"
        (value,) = _DOUBLE.unpack(bound)
        return value if math.isfinite(value) else str(value)
    number = int.from_bytes(bound, "little", signed=True)
    return f"{_DIGITS.scaleb(Decimal(number), -kind.scale):f}" if types.is_decimal(kind) else number
