"""What readers from before Kafka 0.11 are given: messages of format 0 (Fetch 0 and 1) or 1 (Fetch 2 and 3).

Every batch is read, checked and converted, in memory, up to the bytes that the reader takes. A reader whose
limit is below one message gets that message, as in Kafka from Fetch 3 on; before, it would get a part of it
and stop.

A batch of which no message is left (a control batch, or one that compaction has emptied) gives an old reader
no offset to go on from. If a whole read consists of such batches, the log is read on after them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.broker.partition.partition import Partition
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.parts import Part, part_length, read_part
from sparklog.records.envelope import ENVELOPE_BYTES, BatchHeader, parse_header
from sparklog.records.legacy.from_batch import is_convertible, messages_of_batch

LAST_FETCH_OF_FORMAT_0 = 1
LAST_FETCH_OF_FORMAT_1 = 3


def format_of_fetch(version: int) -> int | None:
    """The message format of the readers that send this Fetch version; None for that of the log."""
    if version <= LAST_FETCH_OF_FORMAT_0:
        return 0
    return 1 if version <= LAST_FETCH_OF_FORMAT_1 else None


@dataclass(slots=True)
class OldReader:
    """Converts the partitions of one fetch in turn, within one limit for them all."""

    form: int
    bytes_left: int
    converted: int = 0
    """Records that were given so far."""
    has_given: bool = False

    def take(self, partition: Partition, read: ReadRequest, result: ReadResult) -> ReadResult:
        """``result``, read from ``partition`` as asked by ``read``, with its batches as messages.

        Raises:
            CorruptBatch: the first batch is damaged.
            OSError: the log cannot be read.
        """
        while result.parts:
            limit = min(read.max_bytes, self.bytes_left)
            run = _Run(self.form, read.fetch_offset, limit, at_least_one=not self.has_given)
            run.convert(result.parts)
            if run.given or run.error is not ErrorCode.none or not run.is_whole:
                self.converted += run.count
                self.bytes_left = max(self.bytes_left - run.size_bytes, 0)
                self.has_given = self.has_given or bool(run.given)
                return result._replace(error=run.error, parts=tuple(run.given), size_bytes=run.size_bytes)
            read = read._replace(fetch_offset=run.next_offset)
            result = partition.reads.read(read, at_least_one_batch=True, is_retry=True)
        return result


class _Run:
    """The conversion of batches that were read together."""

    def __init__(self, form: int, fetch_offset: int, bytes_max: int, *, at_least_one: bool) -> None:
        self._form = form
        self._bytes_max = bytes_max
        self._at_least_one = at_least_one
        self.next_offset = fetch_offset
        """The offset after the batches that are done."""
        self.given: list[bytes] = []
        self.size_bytes = self.count = 0
        self.error = ErrorCode.none
        self.is_whole = True
        """Whether every batch is done."""

    def convert(self, parts: Sequence[Part]) -> None:
        """What lies in front of a batch that cannot be converted is given, and the rest is left."""
        try:
            for header, part, position in _batches(parts):
                if not is_convertible(header):
                    self.error = ErrorCode.none if self.given else ErrorCode.unsupported_compression_type
                    self.is_whole = False
                else:
                    self._add(header, read_part(part, position, header.size_bytes))
                if not self.is_whole:
                    return
        except CorruptBatch:
            if not self.given:
                raise
            self.is_whole = False

    def _add(self, header: BatchHeader, batch: bytes) -> None:
        messages = messages_of_batch(
            batch,
            self._form,
            from_offset=self.next_offset,
            bytes_max=self._bytes_max - self.size_bytes,
            at_least_one=self._at_least_one and not self.given,
        )
        if messages.record_count:
            self.given.append(messages.data)
            self.size_bytes += len(messages.data)
            self.count += messages.record_count
        self.is_whole = messages.is_whole
        self.next_offset = max(self.next_offset, header.next_offset)


def _batches(parts: Sequence[Part]) -> Iterator[tuple[BatchHeader, Part, int]]:
    """Each batch's envelope, with the part that it is in and its position there."""
    for part in parts:
        position, length = 0, part_length(part)
        while position < length:
            header = parse_header(read_part(part, position, min(ENVELOPE_BYTES, length - position)))
            if position + header.size_bytes > length:
                raise CorruptBatch(f"a batch at {position} ends behind what was read")
            yield header, part, position
            position += header.size_bytes
