"""Whether bytes are Kafka records, for a leader that appends them and needs none: positions, no objects.

The same verdict as reading the records with ``kafka_walk`` and checking their offsets, in a third of the
time. Nearly every number of a record is one byte, or two where it is the length of a record or of a value;
these are decoded in place, without a call. The layout is told in ``kafka_walk``.
"""

from typing import Final

from sparklog.model.errors import CorruptBatch
from sparklog.records.kafka_walk import (
    HEADER_BYTES_MIN,
    HEADERS_PER_RECORD_MAX,
    VARLONG_BYTES_MAX,
    check_count,
    varint,
)

_MORE: Final = 0x80
"""Set in every byte of a varint but the last."""


def check_records(payload: bytes, count: int, last_offset_delta: int) -> None:
    """CorruptBatch unless exactly ``count`` records fill ``payload``, with offset deltas that grow and end
    at ``last_offset_delta`` at the latest.
    """
    check_count(payload, count)
    position, previous = 0, -1
    try:
        for _ in range(count):
            end, position = _record_end(payload, position)
            # behind the attributes
            if payload[position + 1] < _MORE:
                position += 2
            else:
                position = varint(payload, position + 1, VARLONG_BYTES_MAX)[1]
            byte = payload[position]
            if byte < _MORE:
                offset_delta = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                offset_delta, position = varint(payload, position)
            if not previous < offset_delta <= last_offset_delta:
                raise CorruptBatch(
                    f"offset deltas do not grow up to {last_offset_delta}: {offset_delta} after {previous}"
                )
            previous = offset_delta
            position = _behind_bytes(payload, _behind_bytes(payload, position))
            if payload[position] == 0:
                position += 1
            else:
                position = _behind_headers(payload, position)
            if position != end:
                raise CorruptBatch(f"a record's key, value and headers end at byte {position}, not at {end}")
    except IndexError:
        raise CorruptBatch(f"the payload of {len(payload)} bytes ends within a record") from None
    if position != len(payload):
        raise CorruptBatch(f"{len(payload) - position} bytes are left after {count} records")


def _record_end(payload: bytes, position: int) -> tuple[int, int]:
    """Where the record at ``position`` ends and, behind its length, begins."""
    length, start = varint(payload, position)
    end = start + length
    if length < 0 or end > len(payload):
        raise CorruptBatch(f"a record of {length} bytes at {position} is not within {len(payload)}")
    return end, start


def _behind_bytes(payload: bytes, position: int) -> int:
    """The position behind a key or a value."""
    byte = payload[position]
    if byte < _MORE:
        return position + 1 if byte & 1 else position + 1 + (byte >> 1)
    second = payload[position + 1]
    if second < _MORE and not byte & 1:
        return position + 2 + ((byte & 0x7F) >> 1) + (second << 6)
    length, position = varint(payload, position)
    return position + max(length, 0)


def _behind_headers(payload: bytes, position: int) -> int:
    """The position behind a record's headers."""
    count, position = varint(payload, position)
    if count < 0 or count * HEADER_BYTES_MIN > len(payload) - position:
        raise CorruptBatch(f"{count} headers cannot be in {len(payload) - position} bytes")
    if count > HEADERS_PER_RECORD_MAX:
        raise CorruptBatch(f"a record has {count} headers; at most {HEADERS_PER_RECORD_MAX} are read")
    for _ in range(count):
        if payload[position] & 1:
            raise CorruptBatch(f"the header at byte {position} has no key")
        position = _behind_bytes(payload, _behind_bytes(payload, position))
    return position
