"""Another codec for a *records* batch, by its leader: a topic's ``compression.type``.

The records are the same bytes whatever the codec is, so only the payload, the codec bits, the length and the
CRC change. Offsets, timestamps, headers and the producer's fields stay, and a repeated batch is recognised.

Memory: the payload is decompressed and compressed in steps of about a megabyte, and the result is given up as
soon as it is larger than the topic allows.
"""

from dataclasses import dataclass

from sparklog.model.errors import ErrorCode
from sparklog.records.codecs import compressed_pieces, pieces_of
from sparklog.records.envelope import (
    COMPRESSION_MASK,
    ENVELOPE_BYTES,
    BatchHeader,
    Compression,
    build_envelope,
    parse_header,
)
from sparklog.records.validate import Accepted, RefusedBatch


@dataclass(frozen=True, slots=True)
class Codec:
    """What a topic wants its batches to be compressed with; ``level`` None is the codec's default."""

    compression: Compression
    level: int | None = None


def recompress(
    records: bytearray | memoryview, accepted: Accepted, codec: Codec | None, *, max_batch_bytes: int
) -> tuple[bytearray | memoryview, Accepted] | RefusedBatch:
    """The one batch of ``accepted`` in the codec of its topic; None keeps every codec.

    A batch that has the codec, at whatever level, and an arrow batch are returned as they are. A batch that
    is larger than ``max_batch_bytes`` in its new codec is refused with MESSAGE_TOO_LARGE, as by Kafka.
    """
    [(position, header)] = accepted.batches
    if codec is None or header.is_arrow or header.compression == codec.compression:
        return records, accepted
    payload = memoryview(records)[position + ENVELOPE_BYTES : position + header.size_bytes]
    pieces, size_bytes = [], ENVELOPE_BYTES
    for piece in compressed_pieces(codec.compression, pieces_of(header.compression, payload), codec.level):
        pieces.append(piece)
        size_bytes += len(piece)
        if size_bytes > max_batch_bytes:
            return _too_large(header, codec, max_batch_bytes)
    batch = _rebuilt(header, pieces, codec.compression)
    return batch, Accepted([(0, parse_header(batch))])


def _too_large(header: BatchHeader, codec: Codec, max_batch_bytes: int) -> RefusedBatch:
    return RefusedBatch(
        ErrorCode.message_too_large,
        f"a batch of {header.size_bytes} bytes is larger than max.message.bytes={max_batch_bytes} once the "
        f"leader has changed its codec from {header.compression.name} to {codec.compression.name}: raise the "
        "topic's setting, or send smaller batches",
    )


def _rebuilt(header: BatchHeader, pieces: list[bytes], compression: Compression) -> bytearray:
    """The batch of ``header`` with another payload."""
    return bytearray(
        build_envelope(
            pieces,
            attributes=header.attributes & ~COMPRESSION_MASK | compression,
            record_count=header.record_count,
            last_offset_delta=header.last_offset_delta,
            base_timestamp_ms=header.base_timestamp_ms,
            max_timestamp_ms=header.max_timestamp_ms,
            base_offset=header.base_offset,
            leader_epoch=header.leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )
    )
