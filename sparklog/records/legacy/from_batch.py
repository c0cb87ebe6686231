"""A stored batch as messages of format 0 or 1, for readers that know nothing newer.

The rules are those of Kafka's RecordsUtil.downConvert. Records keep their offsets, keys, values and, in
format 1, timestamps, and lose their headers. The records of a compressed batch are in one wrapper with the
batch's codec; others are messages of their own, so that a reader need not get all of them. A control batch
has no messages. Neither format has zstd: the caller asks ``is_convertible`` before.

A damaged batch raises CorruptBatch, because the new CRCs would hide the damage.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from sparklog.model.errors import CorruptBatch
from sparklog.records.codecs import STEP_BYTES, compressed_pieces
from sparklog.records.envelope import (
    LOG_APPEND_TIME_BIT,
    BatchHeader,
    Bytes,
    Compression,
    crc_matches,
    parse_header,
)
from sparklog.records.kafka.kafka_payload import records_of
from sparklog.records.kafka.walk import WalkedRecord, walk
from sparklog.records.legacy.lz4_header import with_checksum_of_format_0
from sparklog.records.legacy.message import FORMAT_1, build
from sparklog.records.transcode import arrow_to_records


class Messages(NamedTuple):
    """Messages of one batch, and how many records they are; not ``is_whole`` if more did not fit."""

    data: bytes
    record_count: int
    is_whole: bool


NOTHING: Final = Messages(b"", 0, True)


def is_convertible(header: BatchHeader) -> bool:
    """Whether formats 0 and 1 have the batch's codec; an arrow batch's is its own affair."""
    return header.compression is not Compression.ZSTD


def messages_of_batch(
    batch: Bytes, form: int, *, from_offset: int, bytes_max: int, at_least_one: bool
) -> Messages:
    """The records from ``from_offset`` on, at most ``bytes_max`` bytes of them.

    ``at_least_one``: the first message may be larger. A wrapper is one message.
    """
    header = parse_header(batch)
    if not crc_matches(batch, 0, header):
        raise CorruptBatch(f"the batch at offset {header.base_offset} does not match its CRC")
    if header.is_control or not header.record_count:
        return NOTHING
    if header.is_arrow:
        batch = arrow_to_records(batch)
        header = parse_header(batch)
    records = _Records(batch, header, form, from_offset)
    if header.compression is Compression.NONE:
        return _single(records, bytes_max, at_least_one=at_least_one)
    return _wrapped(records, header.compression, bytes_max, at_least_one=at_least_one)


class _Records:
    """The records of a batch from an offset on."""

    def __init__(self, batch: Bytes, header: BatchHeader, form: int, from_offset: int) -> None:
        self.form = form
        self._header = header
        self._walked = walk(records_of(batch, header), header.record_count)
        self._from_offset = from_offset
        self.count = 0
        self.first_offset = self.last_offset = -1
        self.max_timestamp_ms = header.max_timestamp_ms if header.is_log_append_time else -1
        self.attributes = LOG_APPEND_TIME_BIT if header.is_log_append_time and form == FORMAT_1 else 0

    def __iter__(self) -> Iterator[tuple[int, int, WalkedRecord]]:
        """Offset, timestamp and record."""
        header = self._header
        for record in self._walked:
            offset = header.base_offset + record.offset_delta
            if offset < self._from_offset:
                continue
            timestamp_ms = (
                header.max_timestamp_ms
                if header.is_log_append_time
                else header.base_timestamp_ms + record.timestamp_delta_ms
            )
            self.first_offset = offset if self.first_offset < 0 else self.first_offset
            self.last_offset = offset
            self.max_timestamp_ms = max(self.max_timestamp_ms, timestamp_ms)
            self.count += 1
            yield offset, timestamp_ms, record

    def inner(self) -> Iterator[bytes]:
        """The message set inside a wrapper, in pieces of about a megabyte."""
        waiting = bytearray()
        for offset, timestamp_ms, record in self:
            inner_offset = offset - self.first_offset if self.form == FORMAT_1 else offset
            waiting += build(self.form, inner_offset, timestamp_ms, record.key, record.value, self.attributes)
            if len(waiting) >= STEP_BYTES:
                yield bytes(waiting)
                waiting.clear()
        if waiting:
            yield bytes(waiting)


def _single(records: _Records, bytes_max: int, *, at_least_one: bool) -> Messages:
    given: list[bytes] = []
    size_bytes = 0
    for offset, timestamp_ms, record in records:
        message = build(records.form, offset, timestamp_ms, record.key, record.value, records.attributes)
        size_bytes += len(message)
        if size_bytes > bytes_max and (given or not at_least_one):
            return Messages(b"".join(given), len(given), False)
        given.append(message)
    return Messages(b"".join(given), len(given), True)


def _wrapped(records: _Records, codec: Compression, bytes_max: int, *, at_least_one: bool) -> Messages:
    payload: Bytes = b"".join(compressed_pieces(codec, records.inner()))
    if not records.count:
        return NOTHING
    if codec is Compression.LZ4 and records.form != FORMAT_1:
        payload = with_checksum_of_format_0(payload)
    wrapper = build(
        records.form,
        records.last_offset,
        records.max_timestamp_ms,
        None,
        payload,
        records.attributes | codec,
    )
    if len(wrapper) > bytes_max and not at_least_one:
        return Messages(b"", 0, False)
    return Messages(wrapper, records.count, True)
