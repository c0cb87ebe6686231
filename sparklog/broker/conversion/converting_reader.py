"""Readers that are given other bytes than those on disk, batch by batch, up to what they take.

Every batch is read, checked and converted, in memory. It may be larger then, so the limit of the read does
not hold: a batch is given in parts. What lies in front of a batch that cannot be converted is given alone,
and the next fetch begins after that.

A batch of which nothing is left for the reader gives it no offset to go on from. If a whole read consists of
such batches, the log is read on after them. It is also read on for readers that are given much less than is
on disk, up to the end of a stretch that bounds how much one fetch looks at.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.broker.partition.partition import Partition
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.model.errors import CorruptBatch, ErrorCode
from sparklog.model.parts import Part, part_length, read_part, slice_part
from sparklog.records.envelope import ENVELOPE_BYTES, BatchHeader, parse_header


class StoredBatch(NamedTuple):
    """A batch of the log, with the part that it is in and its position there."""

    header: BatchHeader
    part: Part
    position: int

    def read(self) -> bytes:
        """The bytes, in memory; OSError if they cannot be read."""
        return self.read_start(self.header.size_bytes)

    def read_start(self, length: int) -> bytes:
        """The first ``length`` bytes, in memory, or all; OSError if they cannot be read."""
        return read_part(self.part, self.position, min(length, self.header.size_bytes))

    def slice(self, position: int, length: int) -> Part:
        """Some of the bytes, without reading them."""
        return slice_part(self.part, self.position + position, length)


class Room(NamedTuple):
    """What a reader takes of a batch: records from an offset on, and so many bytes.

    ``at_least_one``: the first record may be larger.
    """

    from_offset: int
    bytes_max: int
    at_least_one: bool


class Converted(NamedTuple):
    """What a reader gets of a batch; not ``is_whole`` if more did not fit, or with an error."""

    parts: tuple[Part, ...] = ()
    size_bytes: int = 0
    record_count: int = 0
    is_whole: bool = True
    error: ErrorCode = ErrorCode.none


def as_it_is(batch: StoredBatch, room: Room) -> Converted:
    """The whole batch without reading it; nothing if there is no room."""
    size_bytes = batch.header.size_bytes
    if size_bytes > room.bytes_max and not room.at_least_one:
        return Converted(is_whole=False)
    return Converted((batch.slice(0, size_bytes),), size_bytes)


Convert = Callable[[StoredBatch, Room], Converted]
"""CorruptBatch for a damaged batch."""


@dataclass(slots=True)
class ConvertingReader:
    """Converts the partitions of one fetch in turn, within one limit for them all."""

    bytes_left: int
    converted: int = 0
    """Records that were given so far."""
    has_given: bool = False

    def take(
        self,
        partition: Partition,
        read: ReadRequest,
        result: ReadResult,
        convert: Convert,
        stretch_bytes: int = 0,
        *,
        says_how_far: bool = False,
    ) -> ReadResult:
        """``result``, read from ``partition`` as asked by ``read``, with its batches converted.

        The log is read on while there is room, until this fetch has looked at ``stretch_bytes`` of it. A
        reader that learns how far that was goes on there, also if nothing is left for it.

        Raises:
            CorruptBatch: the first batch is damaged.
            OSError: the log cannot be read.
        """
        limit = min(read.max_bytes, self.bytes_left)
        run = _Run(convert, read.fetch_offset, limit, at_least_one=not self.has_given)
        aborted: dict[AbortedTransaction, None] = {}  # each once: the reader forgets one at its marker
        seen_bytes, answer = 0, result
        while result.parts:
            run.add(result.parts)
            aborted |= dict.fromkeys(result.aborted)
            seen_bytes, answer = seen_bytes + result.size_bytes, result
            if run.is_over or ((run.given or says_how_far) and seen_bytes >= stretch_bytes):
                break
            read = read._replace(fetch_offset=run.next_offset)
            result = partition.reads.read(read, at_least_one_batch=True, is_retry=True)
        if not run.given and run.is_whole and not says_how_far:
            return result
        self.converted += run.count
        self.bytes_left = max(self.bytes_left - run.size_bytes, 0)
        self.has_given = self.has_given or bool(run.given)
        return answer._replace(
            error=run.error,
            parts=tuple(run.given),
            size_bytes=run.size_bytes,
            aborted=tuple(aborted),
            looked_to=run.next_offset if says_how_far else -1,
        )


class _Run:
    """The conversion of batches that were read together."""

    def __init__(self, convert: Convert, fetch_offset: int, bytes_max: int, *, at_least_one: bool) -> None:
        self._convert = convert
        self._bytes_max = bytes_max
        self._at_least_one = at_least_one
        self.next_offset = fetch_offset
        """The offset after the batches that are done."""
        self.given: list[Part] = []
        self.size_bytes = self.count = 0
        self.error = ErrorCode.none
        self.is_whole = True
        """Whether every batch is done."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be given."""
        return not self.is_whole or (bool(self.given) and self.size_bytes >= self._bytes_max)

    def add(self, parts: Sequence[Part]) -> None:
        """What lies in front of a batch that cannot be converted is given, and the rest is left."""
        try:
            for batch in _batches(parts):
                self._add(batch)
                if not self.is_whole:
                    return
        except CorruptBatch:
            if not self.given:
                raise
            self.is_whole = False

    def _add(self, batch: StoredBatch) -> None:
        room = Room(
            self.next_offset, self._bytes_max - self.size_bytes, self._at_least_one and not self.given
        )
        found = self._convert(batch, room)
        self.given += found.parts
        self.size_bytes += found.size_bytes
        self.count += found.record_count
        self.error = ErrorCode.none if self.given else found.error
        self.is_whole = found.is_whole
        if found.is_whole:
            self.next_offset = max(self.next_offset, batch.header.next_offset)


def _batches(parts: Sequence[Part]) -> Iterator[StoredBatch]:
    for part in parts:
        position, length = 0, part_length(part)
        while position < length:
            header = parse_header(read_part(part, position, min(ENVELOPE_BYTES, length - position)))
            if position + header.size_bytes > length:
                raise CorruptBatch(f"a batch at {position} ends behind what was read")
            yield StoredBatch(header, part, position)
            position += header.size_bytes
