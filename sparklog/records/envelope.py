"""The 61-byte envelope before the payload of every batch, as in Kafka's message format v2.

All numbers are big-endian and signed, except the CRC:

      0  base offset            i64   patched by the leader; outside the CRC
      8  length                 i32   bytes after this field: size of the batch - 12
     12  partition leader epoch i32   patched by the leader; outside the CRC
     16  magic                  i8    2
     17  CRC-32C                u32   of everything from byte 21 to the end
     21  attributes             i16   see below
     23  last offset delta      i32   last offset - base offset
     27  base timestamp         i64   milliseconds
     35  max timestamp          i64   milliseconds
     43  producer id            i64   -1: none
     51  producer epoch         i16   -1: none
     53  base sequence          i32   -1: none
     57  record count           i32
     61  payload

Attributes: bits 0-2 codec, 3 log-append time, 4 transactional, 5 control, 6 delete horizon, and two that
Kafka leaves unused: 14, the payload is *arrow* instead of *records*, and 13, the batch has only the columns
that a reader asked for (``arrow/cut_batch``), which no log has (docs/format/batch.md).

Because the CRC covers neither offset nor leader epoch, an append changes 12 bytes and recomputes nothing.
Bytes that are not a batch raise CorruptBatch. ``split`` leaves out an incomplete last batch, which the caller
must judge.
"""

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from crc32c import crc32c

from sparklog.model.errors import CorruptBatch

Bytes = bytes | bytearray | memoryview
"""Bytes in memory; memoryviews must be contiguous and of single bytes."""

ENVELOPE: Final = struct.Struct(">qiibIhiqqqhii")
ENVELOPE_BYTES: Final = 61
assert ENVELOPE.size == ENVELOPE_BYTES

LENGTH_OVERHEAD: Final = 12
"""Bytes of a batch that its length field does not count: base offset and the field itself."""

LENGTH_MIN: Final = ENVELOPE_BYTES - LENGTH_OVERHEAD
MAGIC: Final = 2
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21

COMPRESSION_MASK: Final = 0b111
LOG_APPEND_TIME_BIT: Final = 1 << 3
TRANSACTIONAL_BIT: Final = 1 << 4
CONTROL_BIT: Final = 1 << 5
DELETE_HORIZON_BIT: Final = 1 << 6
CUT_BIT: Final = 1 << 13
ARROW_BIT: Final = 1 << 14
KNOWN_BITS: Final = (
    COMPRESSION_MASK | LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT | DELETE_HORIZON_BIT | ARROW_BIT
)
"""The bits that a batch in a log may have."""

NO_TIMESTAMP: Final = -1
NO_SEQUENCE: Final = -1
SEQUENCE_MODULUS: Final = 1 << 31
"""Sequences run from 0 to 2^31 - 1, then restart at 0."""

_BASE_OFFSET: Final = struct.Struct(">q")
_LEADER_EPOCH: Final = struct.Struct(">i")
_ATTRIBUTES: Final = struct.Struct(">h")
_ATTRIBUTES_TO_COUNT: Final = struct.Struct(">hiqqqhii")
_HEAD: Final = struct.Struct(">qiibI")


class Compression(IntEnum):
    """Codec of a *records* payload, bits 0-2 of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BatchHeader(NamedTuple):
    """The envelope's fields, as read. ``compression`` raises CorruptBatch for a codec Kafka does not have.

    A named tuple, because every replica creates one for every batch, and a frozen dataclass takes eight times
    as long to create.
    """

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """Size of the whole batch, envelope included."""
        return LENGTH_OVERHEAD + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record: sequences wrap from 2^31 - 1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % SEQUENCE_MODULUS

    @property
    def compression(self) -> Compression:
        code = self.attributes & COMPRESSION_MASK
        if code > Compression.ZSTD:
            raise CorruptBatch(f"batch at offset {self.base_offset}: there is no codec {code}")
        return Compression(code)

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_arrow(self) -> bool:
        return bool(self.attributes & ARROW_BIT)

    @property
    def is_cut(self) -> bool:
        """Whether only some of the stored batch's columns are there."""
        return bool(self.attributes & CUT_BIT)

    @property
    def has_producer(self) -> bool:
        return self.producer_id >= 0


def parse_header(buffer: Bytes, position: int = 0) -> BatchHeader:
    """The envelope at ``position``, from at least 61 bytes. CorruptBatch if it is malformed."""
    if len(buffer) - position < ENVELOPE_BYTES:
        available = max(0, len(buffer) - position)
        raise CorruptBatch(f"{available} bytes at {position} are less than an envelope's {ENVELOPE_BYTES}")
    header = BatchHeader(*ENVELOPE.unpack_from(buffer, position))
    if header.magic != MAGIC:
        raise CorruptBatch(f"batch at byte {position} has magic {header.magic}; only {MAGIC} is stored here")
    if header.length < LENGTH_MIN:
        raise CorruptBatch(f"batch at byte {position} has length {header.length}, less than {LENGTH_MIN}")
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.record_count < 0:
        raise CorruptBatch(
            f"batch at byte {position} has base offset {header.base_offset}, last offset delta "
            f"{header.last_offset_delta}, record count {header.record_count}; none may be negative"
        )
    return header


def claims_transaction(buffer: Bytes) -> bool:
    """Whether the batch at the start of ``buffer`` has the transactional bit; checks nothing else."""
    if len(buffer) < ATTRIBUTES_POSITION + _ATTRIBUTES.size or buffer[MAGIC_POSITION] != MAGIC:
        return False
    return bool(_ATTRIBUTES.unpack_from(buffer, ATTRIBUTES_POSITION)[0] & TRANSACTIONAL_BIT)


def crc_matches(buffer: Bytes, position: int, header: BatchHeader) -> bool:
    """Whether the batch is complete and its CRC-32C is the envelope's."""
    end = position + header.size_bytes
    if end > len(buffer):
        return False
    return crc32c(memoryview(buffer)[position + ATTRIBUTES_POSITION : end]) == header.crc


def stamp(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Write base offset and leader epoch into the batch at ``position``. The CRC does not cover them."""
    _BASE_OFFSET.pack_into(buffer, position, base_offset)
    _LEADER_EPOCH.pack_into(buffer, position + LENGTH_OVERHEAD, leader_epoch)


def split(buffer: Bytes) -> list[tuple[int, BatchHeader]]:
    """Position and envelope of every whole batch in a run of batches.

    An incomplete last batch is left out: a fetch limit cut it, or it is a torn tail, and only the caller can
    decide. Compare the end of the last batch with ``len(buffer)`` if the difference matters.
    """
    batches: list[tuple[int, BatchHeader]] = []
    position, end = 0, len(buffer)
    while end - position >= ENVELOPE_BYTES:
        header = parse_header(buffer, position)
        next_position = position + LENGTH_OVERHEAD + header.length
        if next_position > end:
            break
        batches.append((position, header))
        position = next_position
    return batches


def build_envelope(
    payload: Bytes | Sequence[Bytes] | Callable[[int], Sequence[Bytes]],
    *,
    attributes: int,
    record_count: int,
    last_offset_delta: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """A whole batch around ``payload``, which may be a list of pieces, so that it is copied only once, or a
    function that makes the pieces from the CRC of the envelope's bytes 21 to 60.
    """
    covered = _ATTRIBUTES_TO_COUNT.pack(
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    crc = crc32c(covered)
    if callable(payload):
        pieces = list(payload(crc))
    else:
        pieces = [payload] if isinstance(payload, bytes | bytearray | memoryview) else list(payload)
    length = LENGTH_MIN
    for piece in pieces:
        crc = crc32c(piece, crc)
        length += len(piece)
    head = _HEAD.pack(base_offset, length, leader_epoch, MAGIC, crc)
    return b"".join((head, covered, *pieces))
