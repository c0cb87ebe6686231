"""Kafka v2 records one by one, in plain Python, for batches that are too small for numpy.

One record is

    length varint | attributes i8 | timestamp delta varlong | offset delta varint
    | key length varint, key | value length varint, value
    | header count varint, then per header: key length varint, key, value length varint, value

where varints are zigzag numbers, low bits first, of at most 5 bytes (10 for a varlong), and a negative length
of a key or a value means null. Every length is checked against the available bytes.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from sparklog.model.errors import CorruptBatch

RECORD_BYTES_MIN: Final = 7
"""Length, attributes, two deltas, two null lengths, header count: one byte each."""

HEADER_BYTES_MIN: Final = 2
HEADERS_PER_RECORD_MAX: Final = 65_536
"""Kafka has no limit; more than this is an attack on memory."""

VARINT_BYTES_MAX: Final = 5
VARLONG_BYTES_MAX: Final = 10

Header = tuple[bytes, bytes | None]


class WalkedRecord(NamedTuple):
    timestamp_delta_ms: int
    offset_delta: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


def check_count(payload: bytes, count: int) -> None:
    """CorruptBatch for a record count that the payload cannot hold, before memory is allocated."""
    if count * RECORD_BYTES_MIN > len(payload):
        raise CorruptBatch(f"{count} records cannot be in {len(payload)} bytes")


def walk(payload: bytes, count: int) -> Iterator[WalkedRecord]:
    """The ``count`` records that fill ``payload`` exactly; CorruptBatch at the first malformed record."""
    check_count(payload, count)
    position = 0
    try:
        for _ in range(count):
            record, position = _record(payload, position)
            yield record
    except IndexError:
        raise CorruptBatch(f"the payload of {len(payload)} bytes ends within a record") from None
    if position != len(payload):
        raise CorruptBatch(f"{len(payload) - position} bytes are left after {count} records")


def varint(payload: bytes, position: int, bytes_max: int = VARINT_BYTES_MAX) -> tuple[int, int]:
    """The zigzag number at ``position`` and the position after it; IndexError beyond the end."""
    byte = payload[position]
    raw = byte & 0x7F
    shift = 7
    start = position
    position += 1
    while byte & 0x80:
        if position - start == bytes_max:
            raise CorruptBatch(f"the varint at byte {start} is longer than {bytes_max} bytes")
        byte = payload[position]
        raw |= (byte & 0x7F) << shift
        shift += 7
        position += 1
    raw &= 0xFFFF_FFFF_FFFF_FFFF
    return (raw >> 1) ^ -(raw & 1), position


def _bytes(payload: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = varint(payload, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(payload):
        raise CorruptBatch(f"{length} bytes at {position} reach beyond the payload's {len(payload)}")
    return payload[position:end], end


def _record(payload: bytes, position: int) -> tuple[WalkedRecord, int]:
    length, start = varint(payload, position)
    end = start + length
    if length < 0 or end > len(payload):
        raise CorruptBatch(f"a record of {length} bytes at {position} is not within {len(payload)}")
    timestamp_delta_ms, position = varint(payload, start + 1, VARLONG_BYTES_MAX)
    offset_delta, position = varint(payload, position)
    key, position = _bytes(payload, position)
    value, position = _bytes(payload, position)
    header_count, position = varint(payload, position)
    headers: tuple[Header, ...] = ()
    if header_count:
        headers, position = _headers(payload, position, header_count)
    if position != end:
        raise CorruptBatch(
            f"the record at byte {start} has {position - start} bytes, not {length} as it says"
        )
    return WalkedRecord(timestamp_delta_ms, offset_delta, key, value, headers), position


def _headers(payload: bytes, position: int, count: int) -> tuple[tuple[Header, ...], int]:
    if count < 0 or count * HEADER_BYTES_MIN > len(payload) - position:
        raise CorruptBatch(f"{count} headers cannot be in {len(payload) - position} bytes")
    if count > HEADERS_PER_RECORD_MAX:
        raise CorruptBatch(f"a record has {count} headers; at most {HEADERS_PER_RECORD_MAX} are read")
    headers: list[Header] = []
    for _ in range(count):
        key, position = _bytes(payload, position)
        value, position = _bytes(payload, position)
        if key is None:
            raise CorruptBatch(f"a header before byte {position} has no key")
        headers.append((key, value))
    return tuple(headers), position
