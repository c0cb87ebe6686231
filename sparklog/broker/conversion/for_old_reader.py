"""What readers from before Kafka 0.11 are given: messages of format 0 (Fetch 0 and 1) or 1 (Fetch 2 and 3).

A reader whose limit is below one message gets that message, as in Kafka from Fetch 3 on; before, it would get
a part of it and stop. A control batch, and one that compaction has emptied, has no messages. Rows of typed
topics become records of JSON first.
"""

from functools import partial

from sparklog.broker.conversion.converting_reader import (
    Convert,
    Converted,
    ConvertingReader,
    Room,
    StoredBatch,
)
from sparklog.broker.conversion.typed_rows import as_json
from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.broker.partition.partition import Partition
from sparklog.model.errors import ErrorCode
from sparklog.model.parts import Part, part_length, read_part
from sparklog.records.legacy.from_batch import is_convertible, messages_of_batch

LAST_FETCH_OF_FORMAT_0 = 1
LAST_FETCH_OF_FORMAT_1 = 3


def format_of_fetch(version: int) -> int | None:
    """The message format of the readers that send this Fetch version; None for that of the log."""
    if version <= LAST_FETCH_OF_FORMAT_0:
        return 0
    return 1 if version <= LAST_FETCH_OF_FORMAT_1 else None


def messages_taken(
    form: int, converter: ConvertingReader, partition: Partition, read: ReadRequest, result: ReadResult
) -> ReadResult:
    """``ConvertingReader.take`` with batches as messages of format ``form``."""
    convert: Convert = partial(_as_messages, form)
    if partition.is_typed:
        as_rows = partial(as_json, topic_partition=partition.topic_partition, columns=partition.columns)
        convert = partial(_rows_as_messages, form, as_rows)
    return converter.take(partition, read, result, convert)


def _as_messages(form: int, batch: StoredBatch, room: Room) -> Converted:
    if not is_convertible(batch.header):
        return Converted(is_whole=False, error=ErrorCode.unsupported_compression_type)
    return _converted(form, batch.read(), room)


def _converted(form: int, batch: bytes, room: Room) -> Converted:
    messages = messages_of_batch(
        batch,
        form,
        from_offset=room.from_offset,
        bytes_max=room.bytes_max,
        at_least_one=room.at_least_one,
    )
    parts = (messages.data,) if messages.record_count else ()
    return Converted(parts, len(messages.data), messages.record_count, messages.is_whole)


def _rows_as_messages(form: int, as_rows: Convert, batch: StoredBatch, room: Room) -> Converted:
    """Each batch of JSON as messages, until the room is full: a message is larger than its record."""
    rows = as_rows(batch, room)
    given: list[Part] = []
    size_bytes = count = 0
    for records in rows.parts:
        left = Room(room.from_offset, room.bytes_max - size_bytes, room.at_least_one and not given)
        found = _converted(form, read_part(records, 0, part_length(records)), left)
        given += found.parts
        size_bytes += found.size_bytes
        count += found.record_count
        if not found.is_whole:
            return Converted(tuple(given), size_bytes, count, is_whole=False)
    return Converted(tuple(given), size_bytes, count, rows.is_whole, rows.error)
