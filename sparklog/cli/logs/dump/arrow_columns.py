"""The header of an *arrow* batch and its directory of columns, each column compared with its CRC."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from crc32c import crc32c

from sparklog.cli.logs.dump.rows import COLUMN_INDENT, truth
from sparklog.records.arrow.columns import HEADERS_COLUMN, KEY_COLUMN, TIMESTAMP_COLUMN, VALUE_COLUMN
from sparklog.records.arrow.header import UNTYPED_SCHEMA, ArrowHeader, ColumnEntry

NAMES: Final = {
    KEY_COLUMN: "key",
    VALUE_COLUMN: "value",
    TIMESTAMP_COLUMN: "timestamp",
    HEADERS_COLUMN: "headers",
}
"""Columns of schema 0; those of other schemas are named by their number."""

_I64_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class ArrowRow:
    """The fixed part of the header."""

    header: ArrowHeader
    metadata_crc_holds: bool

    def text(self) -> str:
        header = self.header
        return (
            f"{COLUMN_INDENT} arrow schemaId: {header.schema_id} rows: {header.row_count} "
            f"columns: {len(header.columns)} keyColumn: {header.key_column} "
            f"timestampColumn: {header.timestamp_column} headerSize: {header.header_length} "
            f"metadataSize: {header.metadata_length} bodySize: {header.body_length} "
            f"offsetDeltas: {truth(header.offset_deltas is not None)} crc: {header.metadata_crc} "
            f"isvalid: {truth(self.metadata_crc_holds)}"
        )

    def data(self) -> dict[str, Any]:
        header = self.header
        return {
            "schema_id": header.schema_id,
            "rows": header.row_count,
            "key_column": header.key_column,
            "timestamp_column": header.timestamp_column,
            "header_size": header.header_length,
            "metadata_size": header.metadata_length,
            "body_size": header.body_length,
            "offset_deltas": header.offset_deltas is not None,
            "crc": header.metadata_crc,
            "isvalid": self.metadata_crc_holds,
        }


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """One column: its sizes and counts, and its least and greatest value."""

    schema_id: int
    entry: ColumnEntry
    crc_holds: bool
    least: bytes | None
    greatest: bytes | None

    @property
    def name(self) -> str:
        number = self.entry.column_id
        return NAMES.get(number, str(number)) if self.schema_id == UNTYPED_SCHEMA else str(number)

    def text(self) -> str:
        entry = self.entry
        return (
            f"{COLUMN_INDENT} column: {self.name} id: {entry.column_id} nulls: {entry.null_count} "
            f"position: {entry.offset} size: {entry.length} uncompressedSize: {entry.uncompressed_length} "
            f"min: {self._shown(self.least)} max: {self._shown(self.greatest)} "
            f"crc: {entry.crc} isvalid: {truth(self.crc_holds)}"
        )

    def data(self) -> dict[str, Any]:
        entry = self.entry
        return {
            "column": self.name,
            "id": entry.column_id,
            "nulls": entry.null_count,
            "position": entry.offset,
            "size": entry.length,
            "uncompressed_size": entry.uncompressed_length,
            "min": None if self.least is None else self._shown(self.least),
            "max": None if self.greatest is None else self._shown(self.greatest),
            "crc": entry.crc,
            "isvalid": self.crc_holds,
        }

    def _shown(self, value: bytes | None) -> str:
        """A number for a timestamp, text where it is text, and else hexadecimal digits."""
        if value is None:
            return "none"
        if self.name == NAMES[TIMESTAMP_COLUMN] and len(value) == _I64_BYTES:
            return str(int.from_bytes(value, "little", signed=True))
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = ""
        return text if text.isprintable() and text else f"0x{value.hex()}"


def arrow_row(payload: memoryview, header: ArrowHeader) -> ArrowRow:
    metadata = payload[header.header_length : header.header_length + header.metadata_length]
    return ArrowRow(header, crc32c(metadata) == header.metadata_crc)


def column_rows(payload: memoryview, header: ArrowHeader) -> Iterator[ColumnRow]:
    """A row for each column, in the order of the Arrow message."""
    body = payload[header.header_length + header.metadata_length :]
    for entry in header.columns:
        crc = crc32c(body[entry.offset : entry.offset + entry.length])
        least = _statistic(payload, header, entry.min_position, entry.min_length)
        greatest = _statistic(payload, header, entry.max_position, entry.max_length)
        yield ColumnRow(header.schema_id, entry, crc == entry.crc, least, greatest)


def _statistic(payload: memoryview, header: ArrowHeader, position: int, length: int) -> bytes | None:
    """The bytes of a bound; None if it is absent, or its position is outside the header."""
    if not position or position + length > header.header_length:
        return None
    return bytes(payload[position : position + length])
