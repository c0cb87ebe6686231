"""The last value of each key in a run of batches, as compaction would leave them.

Coordinators write the same few keys again and again, a batch for each change, and a new coordinator reads all
of them while its clients wait. So *plain* batches, which are nearly all of them, are walked without an object
for each: the records are uncompressed, in Kafka's format, and in no transaction. One core reads 0.7 million
such batches of one record in a second; with a header for each it was 0.12 million.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from crc32c import crc32c

from sparklog.model.errors import CorruptBatch
from sparklog.records.decoding import record_boundaries
from sparklog.records.envelope import (
    ATTRIBUTES_POSITION,
    DELETE_HORIZON_BIT,
    ENVELOPE_BYTES,
    LENGTH_MIN,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    BatchHeader,
    parse_header,
)
from sparklog.records.kafka.spans import CHUNK_BYTES, CHUNK_RECORDS, spans_of

_ENVELOPE: Final = struct.Struct(">qi4xbIhi30xi")
"""Base offset, length, magic, CRC, attributes, last offset delta and record count of an envelope."""

_OF_OTHER_KINDS: Final = ~(LOG_APPEND_TIME_BIT | DELETE_HORIZON_BIT)
"""Attributes of which a plain batch has none: the codec, a transaction, control records, Arrow."""

LastValues = dict[bytes | None, bytes | None]


def is_plain(header: BatchHeader) -> bool:
    """Whether the batch has records that nothing but their own bytes is needed for."""
    return not header.attributes & _OF_OTHER_KINDS and _is_walked(header.record_count, header.length)


def _is_walked(count: int, length: int) -> bool:
    """Whether a batch's records are measured in one go."""
    return count == 1 or (1 < count <= CHUNK_RECORDS and length <= CHUNK_BYTES - LENGTH_OVERHEAD)


class PlainBatches(NamedTuple):
    """Consecutive plain batches: where their records begin in the run, and what follows them."""

    begins: list[int]
    next_position: int
    next_offset: int
    """The first offset after the last of them; -1 without any."""


def plain_batches(run: bytes, position: int) -> PlainBatches:
    """The plain batches from ``position`` on, until a batch of another kind, or one that is not whole.

    CorruptBatch for a batch that does not match its CRC.
    """
    begins: list[int] = []
    next_offset, end, view = -1, len(run), memoryview(run)
    while end - position >= ENVELOPE_BYTES:
        base_offset, length, magic, crc, attributes, last_delta, count = _ENVELOPE.unpack_from(run, position)
        after = position + LENGTH_OVERHEAD + length
        if magic != MAGIC or attributes & _OF_OTHER_KINDS or length < LENGTH_MIN or after > end:
            break
        if count != 1 and not _is_walked(count, length):
            break
        if crc32c(view[position + ATTRIBUTES_POSITION : after]) != crc:
            raise CorruptBatch(f"the batch at offset {base_offset} does not match its CRC")
        if count == 1:
            begins.append(position + ENVELOPE_BYTES)
        else:
            begins += record_boundaries(run, position, parse_header(run, position))
        position, next_offset = after, base_offset + last_delta + 1
    return PlainBatches(begins, position, next_offset)


def last_values(run: bytes, begins: Sequence[int]) -> LastValues:
    """The last value of each key of the records at ``begins``, in the order of those last records."""
    places: dict[bytes | None, tuple[int, int]] = {}
    for first in range(0, len(begins), CHUNK_RECORDS):
        spans = spans_of(run, list(begins[first : first + CHUNK_RECORDS]))
        for key_start, key_length, value_start, value_length in zip(
            spans.key_starts.tolist(),
            spans.key_lengths.tolist(),
            spans.value_starts.tolist(),
            spans.value_lengths.tolist(),
            strict=True,
        ):
            key = None if key_length < 0 else run[key_start : key_start + key_length]
            places[key] = value_start, value_length
    return {
        key: None if length < 0 else run[start : start + length]
        for key, (start, length) in sorted(places.items(), key=lambda one: one[1][0])
    }
