"""What is in the batches of simulated clients: Kafka's records, or Arrow as Spark's writers send it.

Which batch it is stands in its envelope. Records of compacted topics have keys, and values that are all
different; those of others are all alike. A reader that does not take Arrow is given records, with another
CRC: what is in them is compared instead.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

import pyarrow as pa

from simulation.truth import Rows
from sparklog.records.arrow.arrow_payload import ArrowPayload, read_rows
from sparklog.records.envelope import ENVELOPE_BYTES, BatchHeader, parse_header
from sparklog.records.kafka.encode import Record, build_records_batch
from sparklog.records.kafka.kafka_payload import records_of
from sparklog.records.kafka.walk import walk
from sparklog.records.payload_kinds import SUPPORTED_PAYLOADS

VALUE: Final = b"value"
"""Of each record without a key."""

TAKES_ARROW: Final = SUPPORTED_PAYLOADS
TAKES_RECORDS: Final = ()


class Row(NamedTuple):
    offset_delta: int
    key: bytes | None
    value: bytes | None


@cache
def payload_of(count: int, *, is_arrow: bool = False) -> bytes:
    """So many records without keys."""
    if is_arrow:
        return _arrow({"value": [VALUE] * count})
    return _records([Record(value=VALUE, timestamp_ms=0) for _ in range(count)], 0)


def payload_of_rows(rows: Rows, now_ms: int, *, is_arrow: bool = False) -> bytes:
    """Records with keys; Arrow's have the time of their envelope."""
    if is_arrow:
        return _arrow({"key": [key for key, _ in rows], "value": [value for _, value in rows]})
    return _records([Record(key=key, value=value, timestamp_ms=now_ms) for key, value in rows], now_ms)


def rows_in(batch: memoryview, header: BatchHeader) -> Iterator[Row]:
    """The records of a batch, whichever kind it is."""
    if not header.is_arrow:
        for record in walk(records_of(batch, header), header.record_count):
            yield Row(record.offset_delta, record.key, record.value)
        return
    rows = read_rows(batch, header)
    keys = [None] * header.record_count if rows.key is None else rows.key.to_pylist()
    yield from map(Row, rows.offset_deltas.tolist(), keys, rows.value.to_pylist())


def is_as_sent(batch: memoryview, header: BatchHeader, sent: BatchHeader) -> bool:
    """Whether these are records without keys, as many and of the time as they were sent."""
    expected = [Row(delta, None, VALUE) for delta in range(sent.record_count)]
    is_of_then = header.base_timestamp_ms == header.max_timestamp_ms == sent.base_timestamp_ms
    return is_of_then and list(rows_in(batch, header)) == expected


def _arrow(columns: dict[str, list[bytes | None]]) -> bytes:
    table = pa.table({name: pa.array(values, pa.binary()) for name, values in columns.items()})
    return ArrowPayload().from_columns(table, now_ms=0)[ENVELOPE_BYTES:]


def _records(records: list[Record], now_ms: int) -> bytes:
    batch = build_records_batch(records, now_ms=now_ms)
    return records_of(batch, parse_header(batch))
