"""A check whether bytes are Kafka records, for a leader: it tracks positions and creates no objects.

The result is that of decoding with ``kafka.walk`` and checking the offsets, in a third of the time. Nearly
every number of a record has one byte, or two if it is the length of a record or a value; these are decoded
inline, without a call. ``kafka.walk`` describes the layout.
"""

from typing import Final

from sparklog.model.errors import CorruptBatch
from sparklog.records.kafka.walk import (
    HEADER_BYTES_MIN,
    HEADERS_PER_RECORD_MAX,
    VARLONG_BYTES_MAX,
    check_count,
    varint,
)

_MORE: Final = 0x80
"""Set in every byte of a varint but the last."""


def check_records(payload: bytes, count: int, last_offset_delta: int) -> None:
    """CorruptBatch unless exactly ``count`` records fill ``payload``, with offset deltas that grow and do
    not exceed ``last_offset_delta``.
    """
    check_count(payload, count)
    position, previous = 0, -1
    try:
        for _ in range(count):
            end, position = _record_end(payload, position)
            # the timestamp delta, after one byte of attributes
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
            position = _after_bytes(payload, _after_bytes(payload, position))
            if payload[position] == 0:
                position += 1
            else:
                position = _after_headers(payload, position)
            if position != end:
                raise CorruptBatch(f"a record's key, value and headers end at byte {position}, not at {end}")
    except IndexError:
        raise CorruptBatch(f"the payload of {len(payload)} bytes ends within a record") from None
    if position != len(payload):
        raise CorruptBatch(f"{len(payload) - position} bytes are left after {count} records")


def _record_end(payload: bytes, position: int) -> tuple[int, int]:
    """The end of the record at ``position``, and the position after its length."""
    length, start = varint(payload, position)
    end = start + length
    if length < 0 or end > len(payload):
        raise CorruptBatch(f"a record of {length} bytes at {position} is not within {len(payload)}")
    return end, start


def _after_bytes(payload: bytes, position: int) -> int:
    """The position after a key or a value."""
    byte = payload[position]
    if byte < _MORE:
        return position + 1 if byte & 1 else position + 1 + (byte >> 1)
    second = payload[position + 1]
    if second < _MORE and not byte & 1:
        return position + 2 + ((byte & 0x7F) >> 1) + (second << 6)
    length, position = varint(payload, position)
    return position + max(length, 0)


def _after_headers(payload: bytes, position: int) -> int:
    """The position after a record's headers."""
    count, position = varint(payload, position)
    if count < 0 or count * HEADER_BYTES_MIN > len(payload) - position:
        raise CorruptBatch(f"{count} headers cannot be in {len(payload) - position} bytes")
    if count > HEADERS_PER_RECORD_MAX:
        raise CorruptBatch(f"a record has {count} headers; at most {HEADERS_PER_RECORD_MAX} are read")
    for _ in range(count):
        if payload[position] & 1:
            raise CorruptBatch(f"the header at byte {position} has no key")
        position = _after_bytes(payload, _after_bytes(payload, position))
    return position
