"""Decodes record batches of message format v2, from the published format and nothing else.

Records, compressed or not, and Arrow, for which a typed topic's columns are needed; a codec that is not known
is refused by name.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from histories.arrow_payload import rows_of
from histories.inflate import inflated
from histories.soundness import DamagedBatchError, crc32c
from histories.typed.columns import TopicColumns
from histories.typed.payload import typed_rows

ENVELOPE: Final = struct.Struct(">qiibIhiqqqhii")
ENVELOPE_BYTES: Final = ENVELOPE.size
LENGTH_END: Final = 12
"""The field ``length`` counts what follows it."""
CRC_BEGINS: Final = 21
MAGIC: Final = 2
CODEC_BITS: Final = 7
CONTROL: Final = 1 << 5
ARROW: Final = 1 << 14
KNOWN_BITS: Final = 0b1111111 | ARROW
RECORD_BYTES_MIN: Final = 7
ID_HEADER: Final = b"id"
"""Of a record without a value: its name."""


@dataclass(frozen=True, slots=True)
class Batch:
    """``records`` are offset and value."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    crc: int
    is_control: bool
    records: tuple[tuple[int, str], ...]
    digest: str
    """Of all its bytes."""
    cells: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    """Of typed rows, by offset and column."""


def read_batches(data: bytes, decode: Callable[[bytes], Batch] | None = None) -> Iterator[tuple[int, Batch]]:
    """Positions and batches; ends before a batch that is not whole. ``decode`` takes the bytes of one."""
    decode = decode_batch if decode is None else decode
    position = 0
    while len(data) - position >= ENVELOPE_BYTES:
        (length,) = struct.unpack_from(">i", data, position + 8)
        end = position + LENGTH_END + length
        if length < ENVELOPE_BYTES - LENGTH_END:
            raise DamagedBatchError(f"at byte {position}: a batch of length {length}")
        if end > len(data):
            return
        try:
            yield position, decode(data[position:end])
        except (struct.error, IndexError, zlib.error, UnicodeDecodeError) as error:
            raise DamagedBatchError(f"at byte {position}: {error!r}") from error
        except DamagedBatchError as error:
            raise DamagedBatchError(f"at byte {position}: {error}") from None
        position = end


def decode_batch(data: bytes, columns: TopicColumns | None = None) -> Batch:
    """Everything in it is checked. ``columns``: those of its topic, if that is typed."""
    batch = decode_envelope(data)
    attributes, last_delta, count = _shape(data)
    if attributes & ~KNOWN_BITS or (attributes & ARROW and attributes & (CONTROL | CODEC_BITS)):
        raise DamagedBatchError(f"attributes {attributes:#x}")
    if batch.is_control:
        return batch
    if columns is not None and count:
        if not attributes & ARROW:
            raise DamagedBatchError("records in a typed topic")
        envelope, payload = data[CRC_BEGINS:ENVELOPE_BYTES], data[ENVELOPE_BYTES:]
        typed = list(typed_rows(envelope, payload, columns, batch.base_offset, count, last_delta))
        return replace(
            batch,
            records=tuple((offset, name) for offset, name, _ in typed),
            cells={offset: cells for offset, _, cells in typed},
        )
    if attributes & ARROW:
        rows = rows_of(data[ENVELOPE_BYTES:], batch.base_offset, count, last_delta, ID_HEADER.decode())
        return replace(batch, records=tuple(rows))
    payload = inflated(data[ENVELOPE_BYTES:], attributes & CODEC_BITS)
    return replace(batch, records=tuple(_records(payload, batch.base_offset, count, last_delta)))


def _shape(data: bytes) -> tuple[int, int, int]:
    """Attributes, the last record's offset delta, the count of records."""
    envelope = ENVELOPE.unpack_from(data)
    return envelope[5], envelope[6], envelope[12]


def decode_envelope(data: bytes) -> Batch:
    """Without its records; the checksum is that of all."""
    envelope = ENVELOPE.unpack_from(data)
    base_offset, _, leader_epoch, magic, crc, attributes, last_delta = envelope[:7]
    producer_id, producer_epoch, base_sequence, count = envelope[9:]
    if magic != MAGIC:
        raise DamagedBatchError(f"magic {magic}")
    if crc32c(data[CRC_BEGINS:]) != crc:
        raise DamagedBatchError("the CRC is wrong")
    if last_delta < 0 or not 0 <= count <= last_delta + 1:
        raise DamagedBatchError(f"{count} records in {last_delta + 1} offsets")
    return Batch(
        base_offset,
        base_offset + last_delta,
        leader_epoch,
        producer_id,
        producer_epoch,
        base_sequence,
        crc,
        bool(attributes & CONTROL),
        (),
        hashlib.blake2b(data, digest_size=12).hexdigest(),
    )


def _records(payload: bytes, base_offset: int, count: int, last_delta: int) -> Iterator[tuple[int, str]]:
    if count > len(payload) // RECORD_BYTES_MIN:
        raise DamagedBatchError(f"{count} records in {len(payload)} bytes")
    at, delta_before = 0, -1
    for _ in range(count):
        size, at = _varint(payload, at)
        end = at + size
        if size < RECORD_BYTES_MIN - 1 or end > len(payload):
            raise DamagedBatchError(f"a record of {size} bytes")
        delta, value = _record(payload[at:end])
        if not delta_before < delta <= last_delta:
            raise DamagedBatchError(f"offset delta {delta} after {delta_before}")
        delta_before = delta
        yield base_offset + delta, value
        at = end
    if at != len(payload):
        raise DamagedBatchError(f"{len(payload) - at} bytes behind the last record")


def _record(data: bytes) -> tuple[int, str]:
    """A record's offset delta and value, or name."""
    _, at = _varint(data, 1)  # the timestamp delta, behind the attributes
    delta, at = _varint(data, at)
    _, at = _bytes(data, at)
    value, at = _bytes(data, at)
    headers, at = _varint(data, at)
    name = b""
    for _ in range(headers):
        key, at = _bytes(data, at)
        content, at = _bytes(data, at)
        if key == ID_HEADER and content is not None:
            name = content
    if at != len(data):
        raise DamagedBatchError("a record is longer than what is in it")
    return delta, (name if value is None else value).decode()


def _bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    if at + size > len(data):
        raise DamagedBatchError(f"{size} bytes do not fit into their record")
    return data[at : at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number and where it ends."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
        if shift >= 70:
            raise DamagedBatchError("a number is too long")
