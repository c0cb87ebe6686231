"""The checks of a leader, and of a follower, before they append batches.

A leader applies the rules of Kafka's LogValidator to a client's bytes: one batch per partition, format 2, no
control batch, as many records as offsets, deltas that count up from 0. A refused batch consumes no offset. A
refusal is an expected outcome and is returned as a value, with Kafka's error code.

A follower checks only the CRC of every batch, because its leader has checked the records.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sparklog.model.errors import CorruptBatch, ErrorCode, SchemaError
from sparklog.records.arrow.envelope_crc import VERSION_POSITION
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
from sparklog.records.payload_kinds import takes_arrow

if TYPE_CHECKING:
    from sparklog.records.arrow.topic_columns import TopicColumns


@dataclass(frozen=True, slots=True)
class Accepted:
    """The envelopes of batches to append, with their positions in the checked buffer."""

    batches: list[tuple[int, BatchHeader]]


@dataclass(frozen=True, slots=True)
class RefusedBatch:
    """The reason why nothing is appended."""

    error: ErrorCode
    message: str
    record_errors: tuple[tuple[int, str], ...] = ()
    """Index in the batch and reason of each record at fault; empty if the whole batch is at fault."""


TYPED: Final = (
    "the topic is typed, and takes rows of its columns alone, which Spark writes; records of Kafka's clients "
    "go to an untyped topic"
)
KEYLESS: Final = "a compacted topic takes no record without a key"
_RECORD_ERRORS_MAX: Final = 1_000
"""The most records at fault that are reported one by one; the message has their total number."""


def check_produced(
    buffer: Bytes | None,
    *,
    max_batch_bytes: int,
    payload_kinds: Collection[int],
    look_inside: bool = True,
    requires_keys: bool = False,
    columns: "TopicColumns | None" = None,
) -> Accepted | RefusedBatch:
    """Check a client's bytes for one partition.

    ``payload_kinds``: the kinds and versions that the client announced (the tag of that name).
    ``columns``: those of a typed topic, which takes rows of them alone.
    ``requires_keys``: the topic is compacted.
    ``look_inside``: decompress and check every record; False only if the caller has done so.
    """
    if buffer is None or len(buffer) <= MAGIC_POSITION:
        return RefusedBatch(ErrorCode.invalid_record, f"{len(buffer or b'')} bytes are not a record batch")
    magic = buffer[MAGIC_POSITION]
    if magic != MAGIC and columns is not None:
        return RefusedBatch(ErrorCode.invalid_record, TYPED)
    if magic != MAGIC:
        known = magic < MAGIC
        return RefusedBatch(
            ErrorCode.invalid_record if known else ErrorCode.corrupt_message,
            f"message format {magic} in a request that takes format {MAGIC} alone"
            if known
            else f"there is no message format {magic}",
        )
    try:
        header = parse_header(buffer)
        refused = _check_envelope(buffer, header, max_batch_bytes, payload_kinds)
        if refused is None and columns is not None:
            refused = _check_typed(buffer, header, columns)
        elif refused is None and look_inside:
            payload_of(header).validate(buffer, header)
        if refused is None and requires_keys:
            refused = _check_keys(buffer, header)
    except CorruptBatch as error:
        code = ErrorCode.corrupt_message if len(buffer) < ENVELOPE_BYTES else ErrorCode.invalid_record
        return RefusedBatch(code, str(error))
    return Accepted([(0, header)]) if refused is None else refused


def _check_typed(buffer: Bytes, header: BatchHeader, columns: "TopicColumns") -> RefusedBatch | None:
    """CorruptBatch for rows that are malformed."""
    if not header.is_arrow:
        return RefusedBatch(ErrorCode.invalid_record, TYPED)
    # Code that reads only envelopes imports this module, and does not import Arrow.
    from sparklog.records.arrow.topic_columns import UnknownColumns
    from sparklog.records.arrow.typed_payload import check_not_null, read_typed

    try:
        check_not_null(read_typed(buffer, header, columns))
    except UnknownColumns as error:
        # Sent again: the writer may know of a change of the columns before the leader does.
        return RefusedBatch(ErrorCode.unknown_topic_or_partition, str(error))
    except SchemaError as error:
        return RefusedBatch(ErrorCode.invalid_record, str(error))
    return None


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
    buffer: Bytes, header: BatchHeader, max_batch_bytes: int, payload_kinds: Collection[int]
) -> RefusedBatch | None:
    size_bytes = header.size_bytes
    if size_bytes > max_batch_bytes:
        return RefusedBatch(
            ErrorCode.message_too_large,
            f"a batch of {size_bytes} bytes is larger than max.message.bytes={max_batch_bytes}: "
            "raise the topic's setting, or send smaller batches",
        )
    if size_bytes > len(buffer):
        return RefusedBatch(
            ErrorCode.corrupt_message, f"the batch claims {size_bytes} bytes, but only {len(buffer)} arrived"
        )
    if size_bytes < len(buffer):
        return RefusedBatch(
            ErrorCode.invalid_record,
            f"{len(buffer) - size_bytes} bytes follow the batch; send exactly one batch per partition",
        )
    if not crc_matches(buffer, 0, header):
        return RefusedBatch(ErrorCode.corrupt_message, f"the CRC {header.crc:#010x} does not match the batch")
    version = buffer[VERSION_POSITION] if size_bytes > VERSION_POSITION else 0
    if header.is_arrow and not takes_arrow(payload_kinds, version):
        return RefusedBatch(
            ErrorCode.unsupported_for_message_format,
            f"an arrow batch of version {version} arrived, and the payload_kinds tag, by which a client "
            "announces arrow payloads, does not name it",
        )
    return _check_fields(header)


def _check_fields(header: BatchHeader) -> RefusedBatch | None:
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
    """The whole batches that a leader sent; CorruptBatch at the first wrong CRC.

    An incomplete last batch is left out, because a leader may cut its reply anywhere.
    """
    batches = split(buffer)
    for position, header in batches:
        if not crc_matches(buffer, position, header):
            raise CorruptBatch(
                f"batch at offset {header.base_offset}, byte {position}: its CRC {header.crc:#010x} is wrong"
            )
    return batches
