"""Rows of a typed topic as an *arrow* payload, version 2, and back.

The batch names the version of the topic's columns that its writer knew, and has the columns by their ids,
without names. A column that is null in all rows is absent, but for one if all columns are. Readers map every
version to their own (``mapping``).

The record's time is that of the topic's timestamp column (``arrow_times``); without one, and for null, it is
the time of writing, which is the batch's base timestamp.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sparklog.model.errors import CorruptBatch, SchemaError
from sparklog.model.schema.data_types import Columns
from sparklog.model.schema.paths import quoted
from sparklog.records.arrow.arrow_message import (
    message_pieces,
    offset_deltas_of,
    payload_of_batch,
    read_message,
)
from sparklog.records.arrow.arrow_times import in_milliseconds
from sparklog.records.arrow.cut_batch import message_of_cut
from sparklog.records.arrow.envelope_crc import envelope_crc
from sparklog.records.arrow.header import MICROSECONDS, ArrowHeader
from sparklog.records.arrow.mapping import mapped_columns
from sparklog.records.arrow.topic_columns import TopicColumns, VersionColumns
from sparklog.records.bridge import nulls_of, values_of
from sparklog.records.envelope import ARROW_BIT, BatchHeader, Bytes, Compression, build_envelope
from sparklog.records.payload_kinds import TYPED_ARROW_VERSION
from sparklog.records.row_columns import Int64s


@dataclass(frozen=True, slots=True)
class TypedRows:
    """The columns of a batch that are present, by their ids, in the types of its version."""

    of: VersionColumns
    header: BatchHeader
    present: Mapping[int, Any]
    offset_deltas: Int64s

    @property
    def row_count(self) -> int:
        return self.header.record_count

    def timestamps_ms(self) -> Int64s:
        """The times of the rows as records."""
        header, column = self.header, self.present.get(self.of.timestamp)
        if header.is_log_append_time:
            return np.full(self.row_count, header.max_timestamp_ms, np.int64)
        if column is None:
            return np.full(self.row_count, header.base_timestamp_ms, np.int64)
        nulls = nulls_of(column) if column.null_count else None
        return in_milliseconds(values_of(column), nulls, header.base_timestamp_ms, MICROSECONDS)

    def mapped(self, wanted: Columns) -> list[pa.Array]:
        """The columns ``wanted``, in their order and types. SchemaError for a value that does not fit: the
        reader began before the column was widened.
        """
        try:
            return mapped_columns(self.present, self.of.columns, wanted, self.row_count)
        except SchemaError as error:
            message = f"{error}: the topic's column is wider since; restart the query"
            raise SchemaError(message) from None


def typed_batch(
    present: Mapping[int, Any],
    row_count: int,
    columns: VersionColumns,
    *,
    now_ms: int,
    compression: Compression = Compression.NONE,
) -> bytes:
    """A batch of ``row_count`` rows, at least one; base offset 0, leader epoch -1, no producer.

    ``present`` has arrays by the ids of their columns, in exactly the types of ``columns``.
    """
    kept = {number: present[number] for number in sorted(present) if present[number].null_count < row_count}
    if not kept:
        first = columns.columns[0]
        kept = {first.id: pa.nulls(row_count, columns.schema.columns[first.id].field.type)}
    newest_ms = now_ms
    if columns.timestamp in kept:
        times = kept[columns.timestamp]
        nulls = nulls_of(times) if times.null_count else None
        newest_ms = int(in_milliseconds(values_of(times), nulls, now_ms, MICROSECONDS).max())

    def pieces(crc: int) -> tuple[bytes, memoryview]:
        return message_pieces(
            columns.schema,
            kept,
            row_count,
            compression,
            key_column=columns.key,
            timestamp_column=columns.timestamp,
            version=TYPED_ARROW_VERSION,
            timestamp_unit=MICROSECONDS,
            envelope_crc=crc,
            with_bounds=True,
        )

    return build_envelope(
        pieces,
        attributes=ARROW_BIT,
        record_count=row_count,
        last_offset_delta=row_count - 1,
        base_timestamp_ms=now_ms,
        max_timestamp_ms=newest_ms,
    )


def read_typed(
    batch: Bytes, header: BatchHeader, topic: TopicColumns, wanted: Collection[int] = ()
) -> TypedRows:
    """The rows of a typed batch, fully checked. CorruptBatch if anything is wrong, UnknownColumns for a
    version of the columns that ``topic`` lacks.

    ``wanted`` are the ids for which a batch was cut; one that is not has all of its columns.
    """
    payload, ours = payload_of_batch(batch, header)
    if ours.version != TYPED_ARROW_VERSION:
        raise CorruptBatch(f"an arrow payload of version {ours.version} in a typed topic")
    if ours.envelope_crc != envelope_crc(batch):
        raise CorruptBatch(f"the CRC {ours.envelope_crc:#010x} of the envelope's fields does not match")
    columns = topic.at(ours.schema_id)
    named = (ours.key_column, ours.timestamp_column, ours.timestamp_unit)
    if named != (columns.key, columns.timestamp, MICROSECONDS):
        raise CorruptBatch(
            f"key column, timestamp column and unit {named} are not those of the topic, "
            f"{(columns.key, columns.timestamp, MICROSECONDS)}"
        )
    message: Bytes = payload[ours.header_length :]
    if header.is_cut:
        message, ours = message_of_cut(message, ours, wanted)
    present = read_message(message, ours, header, columns.schema)
    _check_null_counts(ours, present)
    return TypedRows(columns, header, present, offset_deltas_of(ours, header))


def _check_null_counts(ours: ArrowHeader, present: Mapping[int, Any]) -> None:
    for entry in ours.columns:
        nulls = present[entry.column_id].null_count
        if nulls != entry.null_count:
            raise CorruptBatch(
                f"column {entry.column_id} has {nulls} nulls, not {entry.null_count} as it says"
            )


def check_not_null(rows: TypedRows) -> None:
    """SchemaError if a column that is NOT NULL in the rows' version has a null."""
    for column in rows.of.not_null:
        found = rows.present.get(column.id)
        nulls = rows.row_count if found is None else found.null_count
        if nulls:
            raise SchemaError(
                f"column {quoted(column.name)} is NOT NULL in the topic, and null in {nulls} of "
                f"{rows.row_count} rows; filter these rows out, or fill the column"
            )
