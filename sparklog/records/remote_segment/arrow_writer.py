"""Writes an ``.arrow`` object from front to back; ``arrow_object`` says what is in it, and reads it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from crc32c import crc32c

from sparklog.records.remote_segment.arrow_object import (
    CRC_KEY,
    CRC_PLACE,
    CRC_ZEROS,
    FOOTER_BYTES_MAX,
    SEGMENT_KEY,
    STATISTICS_KEY,
)
from sparklog.records.remote_segment.block_statistics import BlockStatistics, pack_statistics
from sparklog.records.remote_segment.column_statistics import PackedColumns
from sparklog.records.remote_segment.identity import SegmentIdentity, pack_identity
from sparklog.records.remote_segment.ipc_file import END_OF_STREAM, HEAD, MAGIC, TAIL, Block, build_footer
from sparklog.records.remote_segment.rows_message import RowsMessage


@dataclass(slots=True)
class ArrowWriter:
    """Builds an ``.arrow`` object from front to back; keeps 24 bytes and the statistics of each batch."""

    identity: SegmentIdentity
    schema: bytes
    """The message at the start of the file."""
    size: int = 0
    footer_crc: int = 0
    _blocks: list[Block] = field(default_factory=list)
    _statistics: list[BlockStatistics] = field(default_factory=list)
    _columns: PackedColumns = field(default_factory=PackedColumns)

    def head(self) -> bytes:
        self.size = len(HEAD) + len(self.schema)
        return HEAD + self.schema

    def add(self, message: RowsMessage) -> Iterator[bytes]:
        """The pieces of one more record batch."""
        self._blocks.append(Block(self.size, len(message.metadata), message.body_length))
        self.size = self._blocks[-1].end
        crc = 0
        for piece in (message.metadata, *message.body):
            crc = crc32c(piece, crc)
            yield bytes(piece)
        self._statistics.append(message.statistics._replace(crc=crc))
        if message.columns is not None:
            self._columns.add(message.columns)

    def end(self) -> bytes:
        """All bytes after the last record batch."""
        metadata = {
            SEGMENT_KEY: pack_identity(self.identity, crc32c(HEAD + self.schema)),
            STATISTICS_KEY: pack_statistics(self._statistics, self._columns.texts),
            CRC_KEY: CRC_ZEROS,
        }
        footer = bytearray(build_footer(self.schema, self._blocks, metadata))
        if len(footer) > FOOTER_BYTES_MAX:
            raise ValueError(f"{len(self._blocks)} record batches are too many for one .arrow object")
        self.footer_crc = crc32c(footer)
        footer[CRC_PLACE] = f"{self.footer_crc:08x}".encode()
        end = END_OF_STREAM + bytes(footer) + TAIL.pack(len(footer), MAGIC)
        self.size += len(end)
        return end
