"""A record-batch message of an ``.arrow`` object, made around the body of an arrow batch.

The batch's own body is taken as it is, at the start of the message's body. Buffers that the file needs and
the batch lacks follow it, in the batch's codec; the metadata before it is new.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Final, NamedTuple

import pyarrow as pa

from sparklog.records.arrow.header import ArrowHeader, parse_arrow_header
from sparklog.records.arrow.layout import IpcLayout, Node, Region, parse_layout
from sparklog.records.envelope import ENVELOPE_BYTES, BatchHeader
from sparklog.records.remote_segment.block_statistics import BlockStatistics
from sparklog.records.remote_segment.column_statistics import ColumnStatistics
from sparklog.records.remote_segment.ipc_file import padding, record_batch_metadata
from sparklog.records.row_columns import Int64s

EMPTY: Final = Region(0, 0)
_UNCOMPRESSED: Final = -1
_LENGTH: Final = Struct("<q")
_CODEC_NAMES: Final = ("lz4", "zstd")


@dataclass(frozen=True, slots=True)
class RowsMessage:
    """A record-batch message, and what the footer says of it.

    ``batch_body``: position in the message and length of an arrow batch's own body; None for rows of records.
    """

    metadata: bytes
    body: Sequence[bytes | memoryview]
    statistics: BlockStatistics
    batch_body: tuple[int, int] | None
    columns: ColumnStatistics | None = None
    """Those of a typed topic."""

    @property
    def body_length(self) -> int:
        return sum(map(len, self.body))


class FileColumn(NamedTuple):
    """The nodes of a column, and its buffers in the message's body."""

    nodes: Sequence[Node]
    buffers: Sequence[Region]


@dataclass(slots=True)
class GrowingBody:
    """An arrow batch's body, and the buffers after it. ``columns`` are those of the batch, by their ids."""

    own: memoryview
    ours: ArrowHeader
    layout: IpcLayout
    columns: dict[int, FileColumn]
    _added: list[bytes] = field(default_factory=list)
    _length: int = 0

    @classmethod
    def of(cls, batch: memoryview, header: BatchHeader) -> "GrowingBody":
        """The body of a batch that was checked before."""
        payload = batch[ENVELOPE_BYTES : header.size_bytes]
        ours = parse_arrow_header(payload)
        message = payload[ours.header_length :]
        layout = parse_layout(message)
        own = message[layout.metadata_length : layout.size_bytes]
        columns = {
            entry.column_id: FileColumn(
                layout.nodes[entry.first_node :][: entry.node_count],
                layout.buffers[entry.first_buffer :][: entry.buffer_count],
            )
            for entry in ours.columns
        }
        fill = padding(len(own))
        return cls(own, ours, layout, columns, [fill], len(own) + len(fill))

    def add(self, data: bytes) -> Region:
        """One more buffer."""
        if self.layout.codec is not None:
            packed = pa.compress(data, codec=_CODEC_NAMES[self.layout.codec], asbytes=True)
            if len(packed) < len(data):
                data = _LENGTH.pack(len(data)) + packed
            else:
                data = _LENGTH.pack(_UNCOMPRESSED) + data
        region = Region(self._length, len(data))
        fill = padding(len(data))
        self._added += [data, fill]
        self._length += len(data) + len(fill)
        return region

    def add_numbers(self, values: Int64s) -> FileColumn:
        """One more column, without nulls."""
        return FileColumn([Node(len(values), 0)], [EMPTY, self.add(values.astype("<i8").tobytes())])

    def message(
        self,
        columns: Sequence[FileColumn],
        statistics: BlockStatistics,
        of_columns: ColumnStatistics | None = None,
    ) -> RowsMessage:
        """The message with these columns, in the order of the file's schema."""
        metadata = record_batch_metadata(
            self.layout.row_count,
            [node for column in columns for node in column.nodes],
            [buffer for column in columns for buffer in column.buffers],
            codec=self.layout.codec,
            body_length=self._length,
        )
        place = (len(metadata), len(self.own))
        return RowsMessage(metadata, [self.own, *self._added], statistics, place, of_columns)


def schema_message(schema: pa.Schema) -> bytes:
    """The message at the start of a file."""
    message = bytes(schema.serialize())
    return message + padding(len(message))
