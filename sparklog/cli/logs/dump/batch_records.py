"""Deep iteration: the records of one batch, with either kind of payload.

Records are yielded one by one until the first unreadable record, which raises CorruptBatch. So the records
before it are shown.
"""

import struct
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from sparklog.cli.logs.dump.dumped_rows import is_typed, typed_rows
from sparklog.cli.logs.dump.rows import RecordRow, as_text
from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.topic_columns import TopicColumns
from sparklog.records.envelope import BatchHeader
from sparklog.records.kafka.kafka_payload import records_of
from sparklog.records.kafka.walk import walk
from sparklog.records.payload import payload_of

CONTROL_KEY: Final = struct.Struct(">hh")
"""Version, type."""

END_MARKER: Final = struct.Struct(">hi")
"""Version, epoch of the coordinator that ended the transaction."""

CONTROL_TYPES: Final = (
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
)
_END_TYPES: Final = 2
_ROWS_AT_ONCE: Final = 4_096


def record_rows(
    batch: memoryview,
    header: BatchHeader,
    *,
    shows_metadata: bool,
    shows_content: bool,
    topic: TopicColumns | None = None,
) -> Iterator[RecordRow]:
    """The records of a batch, in order; CorruptBatch at an unreadable record.

    ``topic``: the columns of a typed topic, if they are known.
    """
    if header.record_count == 0:
        return iter(())
    if is_typed(batch, header):
        return typed_rows(batch, header, topic, shows_metadata, shows_content)
    rows = _arrow_rows if header.is_arrow else _walked_rows
    return rows(batch, header, shows_metadata, shows_content)


def greatest_timestamp_ms(batch: memoryview, header: BatchHeader) -> int:
    """The greatest timestamp of the records themselves, not the envelope's; -1 without records."""
    if header.record_count == 0:
        return -1
    if header.is_log_append_time:
        return header.max_timestamp_ms
    if header.is_arrow:
        return max(-1, int(payload_of(header).times(batch, header).timestamps_ms.max()))
    deltas = (record.timestamp_delta_ms for record in walk(records_of(batch, header), header.record_count))
    return max(-1, header.base_timestamp_ms + max(deltas))


def control_text(key: bytes | None, value: bytes | None) -> str:
    """The content of a control record, as in Kafka's tool; CorruptBatch if it is malformed."""
    if key is None or len(key) < CONTROL_KEY.size:
        raise CorruptBatch(f"a control record's key has {len(key or b'')} bytes, not {CONTROL_KEY.size}")
    number = CONTROL_KEY.unpack_from(key)[1]
    name = CONTROL_TYPES[number] if 0 <= number < len(CONTROL_TYPES) else "UNKNOWN"
    if not 0 <= number < _END_TYPES:
        return f" controlType: {name}({number})"
    if value is None or len(value) < END_MARKER.size:
        raise CorruptBatch(f"a transaction marker has {len(value or b'')} bytes, not {END_MARKER.size}")
    return f" endTxnMarker: {name} coordinatorEpoch: {END_MARKER.unpack_from(value)[1]}"


def _walked_rows(
    batch: memoryview, header: BatchHeader, shows_metadata: bool, shows_content: bool
) -> Iterator[RecordRow]:
    previous = -1
    for record in walk(records_of(batch, header), header.record_count):
        if not previous < record.offset_delta <= header.last_offset_delta:
            raise CorruptBatch(
                f"offset delta {record.offset_delta} after {previous}, the last is {header.last_offset_delta}"
            )
        previous = record.offset_delta
        timestamp_ms = header.base_timestamp_ms + record.timestamp_delta_ms
        yield RecordRow(
            header,
            header.base_offset + record.offset_delta,
            header.max_timestamp_ms if header.is_log_append_time else timestamp_ms,
            record.key,
            record.value,
            [as_text(key) for key, _ in record.headers],
            control_text(record.key, record.value) if header.is_control else "",
            shows_metadata,
            shows_content,
        )


def _arrow_rows(
    batch: memoryview, header: BatchHeader, shows_metadata: bool, shows_content: bool
) -> Iterator[RecordRow]:
    columns = payload_of(header).to_columns(batch, header)
    columns = columns.set_column(
        columns.schema.get_field_index("timestamp"), "timestamp", columns.column("timestamp").cast(pa.int64())
    )
    for start in range(0, columns.num_rows, _ROWS_AT_ONCE):
        for row in columns.slice(start, _ROWS_AT_ONCE).to_pylist():
            yield RecordRow(
                header,
                row["offset"],
                row["timestamp"] // 1_000,
                row["key"],
                row["value"],
                [pair["key"] for pair in row["headers"] or ()],
                "",
                shows_metadata,
                shows_content,
            )
