"""A producer's messages of format 0 or 1 as the one batch that a leader appends.

The rules are those of Kafka's LogValidator and legacy iterators:

- all messages of a set have one format, and a wrapper is the only message of its set;
- inner messages have their wrapper's format and no codec of their own, and each has a CRC of its own;
- offsets that a producer wrote mean nothing, but for a format 1 wrapper's, which is 0 or not below the last
  inner offset;
- zstd is unknown to both formats.

Two cases Kafka takes and we refuse, because a record would be lost without a word: a set that ends within a
message, and a wrapper whose last inner message is cut.

Memory: a wrapper is decompressed, converted and compressed again in steps of about a megabyte, but for an
inner message that is larger alone, and the batch is given up as soon as it is larger than the topic allows.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.records.codecs import STEP_BYTES, compressed_pieces, pieces_of
from sparklog.records.envelope import ENVELOPE_BYTES, NO_TIMESTAMP, Compression, build_envelope, parse_header
from sparklog.records.kafka.encode import append_record
from sparklog.records.legacy.lz4_header import with_right_checksum
from sparklog.records.legacy.message import (
    FORMAT_1,
    BadMessage,
    Message,
    message_bytes,
    messages_of,
    parse,
)
from sparklog.records.recompress import Codec
from sparklog.records.validate import Accepted, RefusedBatch

_INT64_VALUES: Final = 1 << 64
_INT64_MIN: Final = -(1 << 63)


def batch_of_messages(
    sent: memoryview, codec: Codec | None, *, max_batch_bytes: int
) -> tuple[bytearray, Accepted] | RefusedBatch:
    """The messages as one batch of records, with ``codec``; None keeps the codec of a wrapper.

    Neither a message nor the batch may be larger than ``max_batch_bytes``. That a compacted topic needs keys,
    and times of the topic, are the caller's to check.
    """
    try:
        outer = _checked_set(sent, max_batch_bytes)
        first = outer[0]
        source = _codec_of(first)
        if source is None:
            source, inner = Compression.NONE, iter(outer)
        else:
            inner = _inner_messages(first, source)
        return _batch(inner, codec or Codec(source), max_batch_bytes)
    except BadMessage as bad:
        return RefusedBatch(bad.error, str(bad))
    except CorruptBatch as damaged:  # of a codec
        return RefusedBatch(ErrorCode.invalid_record, str(damaged))


def _checked_set(sent: memoryview, max_batch_bytes: int) -> list[Message]:
    """The messages as they were sent, wrappers still closed."""
    outer: list[Message] = []
    position = 0
    for message in messages_of(sent):
        size_bytes = message_bytes(sent, position) or 0
        position += size_bytes
        if size_bytes > max_batch_bytes:
            raise BadMessage(
                ErrorCode.message_too_large,
                f"a message of {size_bytes} bytes is larger than max.message.bytes={max_batch_bytes}: "
                "raise the topic's setting, or send smaller messages",
            )
        if outer and message.format != outer[0].format:
            raise BadMessage(
                ErrorCode.invalid_record,
                f"a message of format {message.format} follows one of format {outer[0].format}",
            )
        outer.append(message)
    if not outer:
        raise BadMessage(ErrorCode.invalid_record, "0 bytes are not a message set")
    if len(outer) > 1 and any(message.codec for message in outer):
        raise BadMessage(
            ErrorCode.invalid_record,
            f"a compressed message is one of {len(outer)}: send exactly one compressed message per partition",
        )
    return outer


def _codec_of(message: Message) -> Compression | None:
    """The codec of a wrapper, None for another message."""
    if message.codec == Compression.NONE:
        return None
    if message.codec == Compression.ZSTD:
        raise BadMessage(
            ErrorCode.invalid_record, f"message format {message.format} has no zstd; use another codec"
        )
    if message.codec > Compression.ZSTD:
        raise BadMessage(ErrorCode.unsupported_compression_type, f"there is no codec {message.codec}")
    return Compression(message.codec)


def _inner_messages(wrapper: Message, codec: Compression) -> Iterator[Message]:
    """The messages in a wrapper; BadMessage at the first that may not be there, or if there is none."""
    if wrapper.value is None:
        raise BadMessage(ErrorCode.invalid_record, "a compressed message has no value")
    if wrapper.is_log_append_time:
        raise _stamped()
    payload = wrapper.value
    if codec is Compression.LZ4 and wrapper.format != FORMAT_1:
        payload = memoryview(with_right_checksum(payload))
    last_offset = None
    for message in _messages_in(pieces_of(codec, payload)):
        if message.format != wrapper.format:
            why = f"a message of format {message.format} is inside one of format {wrapper.format}"
            raise BadMessage(ErrorCode.invalid_record, why)
        if message.codec:
            raise BadMessage(ErrorCode.invalid_record, "a compressed message is inside another")
        last_offset = message.offset
        yield message
    if last_offset is None:
        raise BadMessage(ErrorCode.invalid_record, "a compressed message has no messages inside")
    if wrapper.format == FORMAT_1 and wrapper.offset != 0 and wrapper.offset < last_offset:
        raise BadMessage(
            ErrorCode.invalid_record,
            f"a compressed message has offset {wrapper.offset}, below the last inside it, {last_offset}",
        )


def _messages_in(pieces: Iterator[bytes]) -> Iterator[Message]:
    """The messages of a set that arrives in pieces, which need not end between messages."""
    window = bytearray()
    needed_bytes = 0
    for piece in pieces:
        window += piece
        if len(window) < needed_bytes:
            continue
        view = memoryview(bytes(window))
        position = 0
        while (size_bytes := message_bytes(view, position)) is not None:
            if size_bytes > len(view) - position:
                break
            yield parse(view[position : position + size_bytes])
            position += size_bytes
        needed_bytes = size_bytes or 0
        del window[:position]
    if window:
        raise BadMessage(
            ErrorCode.invalid_record, f"a compressed message set ends within a message of {len(window)} bytes"
        )


def _batch(
    messages: Iterator[Message], codec: Codec, max_batch_bytes: int
) -> tuple[bytearray, Accepted] | RefusedBatch:
    encoder = _Encoder(next(messages))
    pieces, size_bytes = [], ENVELOPE_BYTES
    for piece in compressed_pieces(codec.compression, encoder.encoded(messages), codec.level):
        pieces.append(piece)
        size_bytes += len(piece)
        if size_bytes > max_batch_bytes:
            return RefusedBatch(
                ErrorCode.message_too_large,
                f"the messages make a batch larger than max.message.bytes={max_batch_bytes}: raise the "
                "topic's setting, or send smaller message sets",
            )
    batch = bytearray(
        build_envelope(
            pieces,
            attributes=codec.compression,
            record_count=encoder.count,
            last_offset_delta=encoder.count - 1,
            base_timestamp_ms=encoder.base_timestamp_ms,
            max_timestamp_ms=encoder.max_timestamp_ms,
        )
    )
    return batch, Accepted([(0, parse_header(batch))])


class _Encoder:
    """Messages as records, in order, with what the envelope must know of them all."""

    def __init__(self, first: Message) -> None:
        self._first = first
        self.base_timestamp_ms = first.timestamp_ms
        self.max_timestamp_ms = NO_TIMESTAMP
        self.count = 0

    def encoded(self, others: Iterator[Message]) -> Iterator[bytes]:
        """The records' bytes in pieces of about a megabyte."""
        waiting = bytearray()
        for message in chain((self._first,), others):
            if message.is_log_append_time:
                raise _stamped()
            timestamp_ms = message.timestamp_ms
            if timestamp_ms < NO_TIMESTAMP:
                raise BadMessage(ErrorCode.invalid_timestamp, f"a message has the timestamp {timestamp_ms}")
            # As Java's, the difference of two longs is a long: from -1 to the greatest it wraps.
            delta_ms = (timestamp_ms - self.base_timestamp_ms - _INT64_MIN) % _INT64_VALUES + _INT64_MIN
            append_record(waiting, self.count, delta_ms, message.key, message.value)
            self.max_timestamp_ms = max(self.max_timestamp_ms, timestamp_ms)
            self.count += 1
            if len(waiting) >= STEP_BYTES:
                yield bytes(waiting)
                waiting.clear()
        if waiting:
            yield bytes(waiting)


def _stamped() -> BadMessage:
    return BadMessage(
        ErrorCode.invalid_timestamp,
        "a producer sent a message with the bit for log-append time: only leaders may set it",
    )
