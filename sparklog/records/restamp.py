"""Changes of the envelope's covered fields in a finished batch, with all the CRCs that follow from them.

These are the producer's fields, when a producer numbers its batches, and log-append time. The batch's CRC
covers them, and so does a CRC in the header of typed rows (``arrow.envelope_crc``).
"""

import struct
from typing import Final

from crc32c import crc32c

from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.envelope_crc import write_envelope_crc
from sparklog.records.envelope import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    parse_header,
)

_PRODUCER: Final = struct.Struct(">qhi")
_PRODUCER_POSITION: Final = 43
_ATTRIBUTES: Final = struct.Struct(">h")
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_MAX_TIMESTAMP_POSITION: Final = 35
_CRC: Final = struct.Struct(">I")


def set_producer(
    buffer: bytearray | memoryview,
    position: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    *,
    is_transactional: bool = False,
) -> None:
    """Write the producer's fields into a batch that was built without them, and update the CRCs.

    ``is_transactional`` marks the batch as one of the producer's transaction.
    """
    header = parse_header(buffer, position)
    end = position + header.size_bytes
    if end > len(buffer):
        raise CorruptBatch(f"batch at byte {position} lacks its last {end - len(buffer)} bytes")
    if is_transactional:
        attributes = header.attributes | TRANSACTIONAL_BIT
        _ATTRIBUTES.pack_into(buffer, position + ATTRIBUTES_POSITION, attributes)
    _PRODUCER.pack_into(buffer, position + _PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
    _write_crcs(buffer, position, header)


def set_append_time(buffer: bytearray | memoryview, position: int, now_ms: int) -> BatchHeader:
    """Set log-append time ``now_ms`` for all records of the batch, and update the CRCs."""
    header = parse_header(buffer, position)
    attributes = header.attributes | LOG_APPEND_TIME_BIT
    _ATTRIBUTES.pack_into(buffer, position + ATTRIBUTES_POSITION, attributes)
    _MAX_TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_POSITION, now_ms)
    crc = _write_crcs(buffer, position, header)
    return header._replace(attributes=attributes, max_timestamp_ms=now_ms, crc=crc)


def _write_crcs(buffer: bytearray | memoryview, position: int, header: BatchHeader) -> int:
    """The CRC of the batch, after that within its payload, if there is one."""
    batch = memoryview(buffer)[position : position + header.size_bytes]
    if header.is_arrow:
        write_envelope_crc(batch)
    crc = crc32c(batch[ATTRIBUTES_POSITION:])
    _CRC.pack_into(batch, CRC_POSITION, crc)
    return crc
