"""Rows become batches of the log: small Spark batches are joined, large ones are cut.

A batch holds at most ``BATCH_BYTES`` of rows, or the topic's ``max.message.bytes`` if that is less. Sizes are
estimated first; a batch that is still too large is halved. A single row that does not fit is an error, raised
before any row of its Spark batch is sent.

Held rows are bounded: after every ``HELD_BYTES_MAX`` of input all of them are sent.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from sparklog.model.errors import SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.records.arrow.written_rows import WrittenRows
from sparklog.records.envelope import Compression
from sparklog.records.payload import payload
from sparklog.records.payload_kinds import PayloadKind
from sparklog_datasource.writing.row_sizes import Int64s, row_sizes
from sparklog_datasource.writing.typed_sizes import typed_row_sizes

BATCH_BYTES: Final = 1_000_000
BATCH_OVERHEAD_BYTES: Final = 2_048
"""Envelope, headers and Arrow's metadata, amply."""

HELD_BYTES_MAX: Final = 64 * 1024 * 1024

RECORDS_ROWS_MAX: Final = 16
"""Batches of so few rows are written as Kafka records: an arrow batch costs hundreds of bytes by itself."""

TYPED_BUFFER_BYTES: Final = 64
"""What each buffer of a typed batch takes besides its content: places in directory and metadata, padding."""

Send = Callable[[TopicPartition, bytes], None]


class Encoding(Protocol):
    """How rows of one kind of topic become batches of the log."""

    @property
    def overhead_bytes(self) -> int:
        """What a batch takes besides its rows, amply."""

    def sizes(self, rows: pa.RecordBatch) -> Int64s:
        """About how many bytes each row takes."""

    def encode(self, rows: pa.RecordBatch | pa.Table) -> bytes:
        """One batch of the log, with the current time as its timestamp."""


@dataclass(frozen=True, slots=True)
class UntypedEncoding:
    """Rows with the columns key, value, headers."""

    compression: Compression
    overhead_bytes: int = BATCH_OVERHEAD_BYTES

    def sizes(self, rows: pa.RecordBatch) -> Int64s:
        return row_sizes(rows)

    def encode(self, rows: pa.RecordBatch | pa.Table) -> bytes:
        is_small = rows.num_rows <= RECORDS_ROWS_MAX
        kind = PayloadKind.RECORDS if is_small else PayloadKind.ARROW
        return payload(kind).from_columns(rows, now_ms=_now_ms(), compression=self.compression)


@dataclass(frozen=True, slots=True)
class TypedEncoding:
    """Rows in the types of a typed topic's columns; always arrow, also one row."""

    compression: Compression
    written: WrittenRows

    @property
    def overhead_bytes(self) -> int:
        columns = self.written.version.schema.columns
        buffers = sum(columns[field.id].buffer_count for field in self.written.target)
        return BATCH_OVERHEAD_BYTES + TYPED_BUFFER_BYTES * buffers

    def sizes(self, rows: pa.RecordBatch) -> Int64s:
        return typed_row_sizes(rows)

    def encode(self, rows: pa.RecordBatch | pa.Table) -> bytes:
        batch = rows if isinstance(rows, pa.RecordBatch) else _one_batch(rows)
        return self.written.encode(batch, now_ms=_now_ms(), compression=self.compression)


def _one_batch(rows: pa.Table) -> pa.RecordBatch:
    (batch,) = rows.combine_chunks().to_batches()
    return batch


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class _Held:
    """Rows of one partition that wait for more."""

    pieces: list[pa.RecordBatch] = field(default_factory=list)
    size: int = 0


class Batching:
    """For one task. ``add`` and ``flush`` hand batches to ``send``, in the order of the rows."""

    def __init__(self, encoding: Encoding, send: Send) -> None:
        self.batches_count = 0
        self._encoding = encoding
        self._send = send
        self._held: dict[TopicPartition, _Held] = {}
        self._added_bytes = 0

    def check_rows(self, topic: str, rows: pa.RecordBatch, sizes: Int64s, batch_bytes_max: int) -> None:
        """SparklogError if one of the rows fits no batch that the topic takes."""
        for i in np.flatnonzero(sizes + self._encoding.overhead_bytes > batch_bytes_max).tolist():
            size = len(self._encoding.encode(rows.slice(i, 1)))
            if size > batch_bytes_max:
                raise _too_large(topic, size, batch_bytes_max)

    def add(self, topic_partition: TopicPartition, rows: pa.RecordBatch, batch_bytes_max: int) -> None:
        """Take rows of one partition; sends full batches."""
        room = max(min(BATCH_BYTES, batch_bytes_max) - self._encoding.overhead_bytes, 1)
        held = self._held.setdefault(topic_partition, _Held())
        for piece, size in _cut(rows, self._encoding.sizes(rows), room, held.size):
            if held.pieces and held.size + size > room:
                self._send_held(topic_partition, batch_bytes_max)
                held = self._held.setdefault(topic_partition, _Held())
            held.pieces.append(piece)
            held.size += size
            self._added_bytes += size

    def flush_if_much_is_held(self, bytes_max_of: Callable[[str], int]) -> None:
        if self._added_bytes >= HELD_BYTES_MAX:
            self.flush(bytes_max_of)

    def flush(self, bytes_max_of: Callable[[str], int]) -> None:
        """Send all held rows."""
        for topic_partition in list(self._held):
            self._send_held(topic_partition, bytes_max_of(topic_partition.topic))
        self._added_bytes = 0

    def _send_held(self, topic_partition: TopicPartition, batch_bytes_max: int) -> None:
        held = self._held.pop(topic_partition)
        rows = held.pieces[0] if len(held.pieces) == 1 else pa.Table.from_batches(held.pieces)
        for batch in _encoded(topic_partition.topic, rows, self._encoding, batch_bytes_max):
            self._send(topic_partition, batch)
            self.batches_count += 1


def _cut(rows: pa.RecordBatch, sizes: Int64s, room: int, filled: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Slices in order, and their sizes: the first fits beside ``filled``, each other one fits ``room``.

    A slice has a row at least, even if that is larger than the room.
    """
    ends = np.cumsum(sizes)
    first, done = 0, 0
    limit = room - filled
    while first < rows.num_rows:
        last = max(int(np.searchsorted(ends, done + limit, side="right")), first + 1)
        size = int(ends[last - 1]) - done
        yield rows.slice(first, last - first), size
        first, done, limit = last, done + size, room


def _encoded(
    topic: str, rows: pa.RecordBatch | pa.Table, encoding: Encoding, batch_bytes_max: int
) -> Iterator[bytes]:
    batch = encoding.encode(rows)
    if len(batch) <= batch_bytes_max:
        yield batch
        return
    if rows.num_rows == 1:
        raise _too_large(topic, len(batch), batch_bytes_max)
    half = rows.num_rows // 2
    yield from _encoded(topic, rows.slice(0, half), encoding, batch_bytes_max)
    yield from _encoded(topic, rows.slice(half), encoding, batch_bytes_max)


def _too_large(topic: str, size: int, batch_bytes_max: int) -> SparklogError:
    return SparklogError(
        f"a row takes {size} bytes, more than the {batch_bytes_max} that a batch of topic {topic!r} may "
        "have; raise the topic's max.message.bytes (and option kafka.max.request.size, if it is set), or "
        "write less per row"
    )
