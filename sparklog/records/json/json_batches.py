"""Typed rows as batches of *records*, for readers that know nothing else: each value is an object of JSON.

The objects have all columns of the topic's newest version, with their present names. Offsets, times,
producer and sequence are the rows' own, so that a read-committed consumer leaves out the same ones. The key
is the key column's text.

JSON is made of some thousand rows at a time, and only until the reader has what it takes: a batch may so be
given in parts, from any row on.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from sparklog.model.errors import CorruptBatch, SchemaError, SparklogError
from sparklog.records.arrow.key_text import key_texts
from sparklog.records.arrow.topic_columns import TopicColumns, VersionColumns
from sparklog.records.arrow.typed_payload import TypedRows, read_typed
from sparklog.records.codecs import DECOMPRESSED_BYTES_MAX
from sparklog.records.envelope import (
    ARROW_BIT,
    ENVELOPE_BYTES,
    SEQUENCE_MODULUS,
    Bytes,
    build_envelope,
    crc_matches,
    parse_header,
)
from sparklog.records.json.json_texts import object_texts
from sparklog.records.json.size_bounds import json_bytes_max
from sparklog.records.kafka.frames import Frames, frames_of

ROWS_MAX: Final = 8_192
BYTES_AT_ONCE_MAX: Final = 8 * 1024 * 1024
BYTES_AT_ONCE_MIN: Final = 64 * 1024
"""What is made at once of a reader's last bytes, so that they do not fill up in ever smaller batches."""
ROW_BYTES_MAX: Final = DECOMPRESSED_BYTES_MAX


class RowTooLarge(SparklogError):  # noqa: N818 (a state, not a mistake)
    """A row whose JSON may have more than ``ROW_BYTES_MAX`` bytes, which no reader takes."""


class JsonBatches(NamedTuple):
    """Batches of records, and how many records; not ``is_whole`` if more did not fit."""

    batches: tuple[bytes, ...]
    size_bytes: int
    record_count: int
    is_whole: bool


class _Piece(NamedTuple):
    batch: bytes
    row_count: int
    is_whole: bool
    """Whether it has all rows of which JSON was made."""


def json_batches(
    batch: Bytes, topic: TopicColumns, *, from_offset: int, bytes_max: int, at_least_one: bool
) -> JsonBatches:
    """The rows of a typed batch from ``from_offset`` on, at most ``bytes_max`` bytes of them.

    ``at_least_one``: the first row may be larger, up to ``ROW_BYTES_MAX``. CorruptBatch for a damaged batch,
    UnknownColumns for one of a later version of the columns, RowTooLarge if the first row is.
    """
    header = parse_header(batch)
    if not crc_matches(batch, 0, header):  # the new CRC would hide the damage
        raise CorruptBatch(f"the batch at offset {header.base_offset} does not match its CRC")
    try:
        rows = _Rows(read_typed(batch, header, topic), topic.newest)
    except SchemaError as problem:
        raise CorruptBatch(f"the batch at offset {header.base_offset}: {problem}") from None
    first = reached = rows.first_from(from_offset)
    given: list[bytes] = []
    left = bytes_max
    while reached < rows.count:
        try:
            piece = rows.encoded(reached, left, at_least_one=at_least_one and not given)
        except RowTooLarge:
            if not given:
                raise
            break
        if piece.row_count:
            given.append(piece.batch)
            left -= len(piece.batch)
            reached += piece.row_count
        if not piece.is_whole:
            break
    return JsonBatches(tuple(given), bytes_max - left, reached - first, reached == rows.count)


class _Rows:
    """The rows of a batch in the newest version's columns."""

    def __init__(self, rows: TypedRows, newest: VersionColumns) -> None:
        self._header = rows.header
        self._columns = newest.columns
        self._arrays = rows.mapped(newest.columns)
        self._key = [column.id for column in newest.columns].index(newest.key) if newest.key >= 0 else None
        self._offset_deltas = rows.offset_deltas
        self._timestamps_ms = rows.timestamps_ms()
        self.count = rows.row_count

    def first_from(self, offset: int) -> int:
        """The index of the first row from ``offset`` on."""
        return int(np.searchsorted(self._offset_deltas, offset - self._header.base_offset))

    def encoded(self, start: int, bytes_max: int, *, at_least_one: bool) -> _Piece:
        """A batch of some rows from ``start`` on, as many as go into ``bytes_max``."""
        arrays = self._some_from(start, min(max(bytes_max, BYTES_AT_ONCE_MIN), BYTES_AT_ONCE_MAX))
        made = len(arrays[0])
        rows = slice(start, start + made)
        key = None if self._key is None else key_texts(arrays[self._key]).cast(pa.binary())
        frames = frames_of(
            self._offset_deltas[rows] - self._first_delta(start),
            self._timestamps_ms[rows] - self._timestamps_ms[start],
            key,
            object_texts(self._columns, arrays, made).cast(pa.binary()),
        )
        count = int(np.searchsorted(frames.ends, bytes_max - ENVELOPE_BYTES, side="right"))
        if at_least_one:
            count = max(count, 1)
        batch = self._batch(start, count, frames) if count else b""
        return _Piece(batch, count, count == made)

    def _some_from(self, start: int, bytes_max: int) -> list[Any]:
        """The columns of rows from ``start`` on whose JSON is within ``bytes_max``, or of one row."""
        count = min(self.count - start, ROWS_MAX)
        while True:
            arrays = [array.slice(start, count) for array in self._arrays]
            size_bytes = json_bytes_max(self._columns, arrays, count)
            if size_bytes <= bytes_max:
                return arrays
            if count == 1:
                break
            count = max(1, min(count // 2, count * bytes_max // size_bytes))
        if size_bytes > ROW_BYTES_MAX:
            raise RowTooLarge(
                f"the row at offset {self._header.base_offset + self._offset_deltas[start]} may be "
                f"{size_bytes} bytes as JSON, more than {ROW_BYTES_MAX}; read the topic with Spark"
            )
        return arrays

    def _first_delta(self, start: int) -> int:
        """The offset delta, in the stored batch, that a batch of rows from ``start`` on begins with."""
        return int(self._offset_deltas[start]) if start else 0

    def _batch(self, start: int, count: int, frames: Frames) -> bytes:
        header, first_delta, end = self._header, self._first_delta(start), start + count
        last_delta = header.last_offset_delta if end == self.count else int(self._offset_deltas[end - 1])
        times_ms = self._timestamps_ms[start:end]
        sequence = header.base_sequence
        return build_envelope(
            frames.payload[: int(frames.ends[count - 1])],
            attributes=header.attributes & ~ARROW_BIT,
            record_count=count,
            last_offset_delta=last_delta - first_delta,
            base_timestamp_ms=int(times_ms[0]),
            max_timestamp_ms=int(times_ms.max()),
            base_offset=header.base_offset + first_delta,
            leader_epoch=header.leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=sequence if sequence < 0 else (sequence + first_delta) % SEQUENCE_MODULUS,
        )
