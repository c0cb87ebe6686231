"""Builds both objects of a segment, in a stream: memory is that of a few batches.

The segment is read twice, once for each object, as a store takes one object at a time. Bodies of arrow
batches are written into ``.arrow`` as they are; rows of consecutive *records* batches are joined to record
batches of about ROWS_MAX rows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from sparklog.records.arrow.topic_columns import TopicColumns, UnknownColumns
from sparklog.records.envelope import BatchHeader
from sparklog.records.payload import payload_of
from sparklog.records.remote_segment.arrow_rows import (
    FILE_SCHEMA,
    message_of_arrow_batch,
    message_of_rows,
)
from sparklog.records.remote_segment.arrow_writer import ArrowWriter
from sparklog.records.remote_segment.identity import SegmentIdentity
from sparklog.records.remote_segment.rest_object import Entry, end_bytes, entry_of, head_bytes
from sparklog.records.remote_segment.rows_message import RowsMessage, schema_message
from sparklog.records.remote_segment.typed_message import file_schema, message_of_typed_batch

ROWS_MAX: Final = 16_384
ROW_BYTES_MAX: Final = 8 * 1024 * 1024
"""Rows of *records* that are joined before they are written."""


@dataclass(frozen=True, slots=True)
class SegmentBatch:
    """A batch of the segment: its envelope, all its bytes, and whether its transaction was aborted."""

    header: BatchHeader
    data: memoryview
    is_aborted: bool = False

    @property
    def has_rows(self) -> bool:
        """Whether its rows count: readers of committed records get them."""
        return not (self.header.is_control or self.is_aborted) and self.header.record_count > 0


@dataclass(slots=True)
class SegmentBuilder:
    """``arrow_pieces`` first, then ``rest_pieces``, each with the same batches; ``is_raw``: only the latter.

    CorruptBatch for a batch that cannot be read: its segment is not copied. ``columns`` are those of a typed
    topic; all rows that count are of the version in ``identity``.
    """

    identity: SegmentIdentity
    is_raw: bool = False
    columns: TopicColumns | None = None
    _arrow: ArrowWriter = field(init=False)
    _bodies: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By base offset: where the body of an arrow batch lies in ``.arrow``."""

    def __post_init__(self) -> None:
        self._arrow = ArrowWriter(self.identity, b"")

    def arrow_pieces(self, batches: Iterable[SegmentBatch]) -> Iterator[bytes]:
        """The bytes of the ``.arrow`` object."""
        self._bodies.clear()
        self._arrow = ArrowWriter(self.identity, schema_message(self._schema()))
        yield self._arrow.head()
        rows = _JoinedRows(self._arrow)
        for batch in batches:
            if not batch.has_rows:
                continue
            if not (batch.header.is_arrow or self.identity.schema_version):
                yield from rows.add(payload_of(batch.header).to_columns(batch.data, batch.header))
                continue
            yield from rows.flush()
            message = self._message(batch)
            if message.batch_body is not None:
                start, length = message.batch_body
                self._bodies[batch.header.base_offset] = (self._arrow.size + start, length)
            yield from self._arrow.add(message)
        yield from rows.flush()
        yield self._arrow.end()

    def _schema(self) -> Any:
        version = self.identity.schema_version
        return file_schema(self._topic().at(version).columns) if version else FILE_SCHEMA

    def _message(self, batch: SegmentBatch) -> RowsMessage:
        version = self.identity.schema_version
        if not version:
            return message_of_arrow_batch(batch.data, batch.header)
        return message_of_typed_batch(batch.data, batch.header, self._topic(), version)

    def _topic(self) -> TopicColumns:
        if self.columns is None:
            raise UnknownColumns(self.identity.schema_version, 0)
        return self.columns

    def rest_pieces(self, batches: Iterable[SegmentBatch]) -> Iterator[bytes]:
        """The bytes of the ``.rest`` object."""
        if not (self.is_raw or self._arrow.footer_crc):
            raise ValueError("arrow_pieces come first, as .rest says where bodies are; or set is_raw")
        segment_id = self.identity.segment_id
        head = head_bytes(segment_id, is_raw=self.is_raw)
        entries: list[Entry] = []
        position = len(head)
        yield head
        for batch in batches:
            body = self._bodies.get(batch.header.base_offset)
            part = bytes(batch.data[: batch.header.size_bytes - (body[1] if body else 0)])
            entries.append(entry_of(batch.header, part, position, body))
            position += len(part)
            yield part
        yield end_bytes(
            segment_id,
            entries,
            position,
            arrow_size=self._arrow.size,
            arrow_footer_crc=self._arrow.footer_crc,
            is_raw=self.is_raw,
        )


@dataclass(slots=True)
class _JoinedRows:
    """Rows of consecutive *records* batches that wait to be written."""

    arrow: ArrowWriter
    rows: list[Any] = field(default_factory=list)
    row_count: int = 0
    size_bytes: int = 0

    def add(self, columns: Any) -> Iterator[bytes]:
        self.rows.append(columns)
        self.row_count += columns.num_rows
        self.size_bytes += columns.nbytes
        if self.row_count >= ROWS_MAX or self.size_bytes >= ROW_BYTES_MAX:
            yield from self.flush()

    def flush(self) -> Iterator[bytes]:
        rows, self.rows = self.rows, []
        self.row_count = self.size_bytes = 0
        if rows:
            yield from self.arrow.add(message_of_rows(rows))
