"""What a leader asks of bytes before it appends them, and a follower of bytes before it believes them.

Clients are held to the rules of Kafka's LogValidator: one batch per partition, format v2, no control batch,
as many records as offsets, deltas that count up from 0. What is refused uses up no offset. A refusal is an
expected outcome and comes as a value, with the error code that Kafka would send.

Followers check the CRC of every batch, and nothing else: the leader has looked inside.
"""

from dataclasses import dataclass
from typing import Final

from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.records.envelope import (
    COMPRESSION_MASK,
    DELETE_HORIZON_BIT,
    ENVELOPE_BYTES,
    KNOWN_BITS,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    Bytes,
    Compression,
    crc_matches,
    parse_header,
    split,
)
from sparklog.records.payload import payload_of


@dataclass(frozen=True, slots=True)
class Accepted:
    """Batches to append, with their positions in what was checked."""

    batches: list[tuple[int, BatchHeader]]


@dataclass(frozen=True, slots=True)
class RefusedBatch:
    """Why nothing of it is appended."""

    error: ErrorCode
    message: str
    record_errors: tuple[tuple[int, str], ...] = ()
    """Index within the batch and reason of each record at fault, if single records are."""


KEYLESS: Final = "a compacted topic takes no record without a key"
_RECORD_ERRORS_MAX: Final = 1_000
"""Records at fault that are told one by one; that there are more is said with their number."""


def check_produced(
    buffer: Bytes | None,
    *,
    max_batch_bytes: int,
    allow_arrow: bool,
    look_inside: bool = True,
    requires_keys: bool = False,
) -> Accepted | RefusedBatch:
    """Judge what a client wants appended to one partition.

    ``allow_arrow``: the client said that it knows arrow payloads (the ``payload_kinds`` tag).
    ``requires_keys``: the topic is compacted.
    ``look_inside``: decompress and check every record; only for callers that did so themselves is it False.
    """
    if buffer is None or len(buffer) <= MAGIC_POSITION:
        return RefusedBatch(ErrorCode.invalid_record, f"{len(buffer or b'')} bytes are not a record batch")
    magic = buffer[MAGIC_POSITION]
    if magic != MAGIC:
        return RefusedBatch(
            ErrorCode.unsupported_for_message_format,
            f"messages of format v{magic} are not taken; the producer must send v{MAGIC}",
        )
    try:
        header = parse_header(buffer)
        refused = _check_envelope(buffer, header, max_batch_bytes, allow_arrow)
        if refused is None and look_inside:
            payload_of(header).validate(buffer, header)
        if refused is None and requires_keys:
            refused = _check_keys(buffer, header)
    except CorruptBatch as error:
        code = ErrorCode.corrupt_message if len(buffer) < ENVELOPE_BYTES else ErrorCode.invalid_record
        return RefusedBatch(code, str(error))
    return Accepted([(0, header)]) if refused is None else refused


def _check_keys(buffer: Bytes, header: BatchHeader) -> RefusedBatch | None:
    count, first_rows = payload_of(header).keyless_rows(buffer, header, _RECORD_ERRORS_MAX)
    if not count:
        return None
    return RefusedBatch(
        ErrorCode.invalid_record,
        f"{count} of {header.record_count} records have no key, the first at index {first_rows[0]}: "
        "give every record a key, or change the topic's cleanup.policy",
        tuple((index, KEYLESS) for index in first_rows),
    )


def _check_envelope(
    buffer: Bytes, header: BatchHeader, max_batch_bytes: int, allow_arrow: bool
) -> RefusedBatch | None:
    size_bytes = header.size_bytes
    if size_bytes > max_batch_bytes:
        return RefusedBatch(
            ErrorCode.message_too_large,
            f"a batch of {size_bytes} bytes is larger than max.message.bytes={max_batch_bytes}: "
            "raise that of the topic, or send less at once",
        )
    if size_bytes > len(buffer):
        return RefusedBatch(
            ErrorCode.corrupt_message, f"the batch says {size_bytes} bytes, but only {len(buffer)} came"
        )
    if size_bytes < len(buffer):
        return RefusedBatch(
            ErrorCode.invalid_record,
            f"{len(buffer) - size_bytes} bytes follow the batch; send exactly one batch per partition",
        )
    if not crc_matches(buffer, 0, header):
        return RefusedBatch(ErrorCode.corrupt_message, f"the CRC {header.crc:#010x} does not match the batch")
    return _check_fields(header, allow_arrow)


def _check_fields(header: BatchHeader, allow_arrow: bool) -> RefusedBatch | None:
    if header.is_control:
        return RefusedBatch(ErrorCode.invalid_record, "clients may not write control batches")
    if header.attributes & DELETE_HORIZON_BIT:
        return RefusedBatch(
            ErrorCode.invalid_record, "only compaction sets a delete horizon (attribute bit 6)"
        )
    if header.attributes & ~KNOWN_BITS:
        return RefusedBatch(
            ErrorCode.invalid_record, f"attributes {header.attributes:#06x} have unknown bits"
        )
    if header.is_arrow and not allow_arrow:
        return RefusedBatch(
            ErrorCode.unsupported_for_message_format,
            "an arrow batch came without the payload_kinds tag that says the client knows arrow batches",
        )
    codec = header.attributes & COMPRESSION_MASK
    if codec > Compression.ZSTD:
        return RefusedBatch(ErrorCode.unsupported_compression_type, f"there is no codec {codec}")
    if header.base_offset != 0:
        return RefusedBatch(ErrorCode.invalid_record, f"base offset is {header.base_offset}, not 0")
    if header.record_count == 0 or header.record_count != header.last_offset_delta + 1:
        return RefusedBatch(
            ErrorCode.invalid_record,
            f"{header.record_count} records for last offset delta {header.last_offset_delta}",
        )
    if header.has_producer and (header.base_sequence < 0 or header.producer_epoch < 0):
        return RefusedBatch(
            ErrorCode.invalid_record,
            f"producer {header.producer_id}: epoch {header.producer_epoch}, sequence {header.base_sequence}",
        )
    return None


def check_replicated(buffer: Bytes) -> list[tuple[int, BatchHeader]]:
    """The whole batches that a leader sent, each with a CRC that holds; CorruptBatch for the first other.

    An incomplete last batch is left out, as a leader may cut its reply anywhere.
    """
    batches = split(buffer)
    for position, header in batches:
        if not crc_matches(buffer, position, header):
            raise CorruptBatch(
                f"batch at offset {header.base_offset}, byte {position}: its CRC {header.crc:#010x} is wrong"
            )
    return batches
