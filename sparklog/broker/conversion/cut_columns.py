"""Batches of typed topics for readers that name the columns they want: *cut* batches.

Of each batch the start is read, which has envelope, header and metadata. The wanted columns leave as slices
of the file. Other batches, such as markers of transactions, go whole.

A reader may also say which rows it wants. Batches whose bounds show that they have none are passed over, and
the answer says how far this replica has looked. In doubt a batch goes: without bounds, or of another version
of the columns than the reader's.
"""

from dataclasses import dataclass
from typing import Final

from sparklog.broker.conversion.converting_reader import (
    Converted,
    ConvertingReader,
    Room,
    StoredBatch,
    as_it_is,
)
from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.broker.partition.partition import Partition
from sparklog.model.parts import Part
from sparklog.model.schema.predicates.packed import PackedCondition, unpack
from sparklog.records.arrow.cut_batch import CutBatch, can_be_cut, checked_header, cut_batch, head_bytes
from sparklog.records.arrow.header import ArrowHeader
from sparklog.records.arrow.skipping import may_keep

STRETCH_BYTES: Final = 64 * 1024 * 1024
"""How much of the log one fetch looks at, but for its last read."""

BATCHES_MAX: Final = 1_000
"""The most batches that one fetch looks at: some 20 ms, without a condition."""

TERMS_MAX: Final = 5_000
"""A fetch looks at no further batch once it has compared so many terms and values: some 60 ms."""

START_BYTES: Final = 16 * 1024
"""What is read of a batch at first: small ones whole, and the head of one with 150 columns."""


@dataclass(slots=True)
class CutColumns:
    """The cutting for one fetch, of all its partitions."""

    looked_at: int = 0
    """Batches of the log."""
    batches: int = 0
    """Those of them that were cut."""
    left_out_bytes: int = 0
    """Their bytes that the reader is not given."""
    passed_over: int = 0
    """Batches without a row that the reader wants."""
    compared: int = 0
    """Terms and values of conditions, for each batch that was judged."""

    def take(
        self, converter: ConvertingReader, partition: Partition, read: ReadRequest, result: ReadResult
    ) -> ReadResult:
        """``ConvertingReader.take`` with the columns and rows that ``read`` names."""
        wanted = frozenset(read.columns or ())
        rows = unpack(read.condition) if read.condition else None
        return converter.take(
            partition,
            read,
            result,
            lambda batch, room: self._cut(batch, room, wanted, rows),
            STRETCH_BYTES,
            says_how_far=rows is not None,
        )

    def _cut(
        self, batch: StoredBatch, room: Room, wanted: frozenset[int], rows: PackedCondition | None
    ) -> Converted:
        if self.looked_at == BATCHES_MAX or self.compared >= TERMS_MAX:
            return Converted(is_whole=False)
        self.looked_at += 1
        if not batch.header.is_arrow:
            return as_it_is(batch, room)
        start = batch.read_start(START_BYTES)
        if not can_be_cut(start, batch.header):
            return as_it_is(batch, room)
        if head_bytes(start, batch.header) > len(start):
            start = batch.read_start(head_bytes(start, batch.header))
        ours = checked_header(start, batch.header)
        if rows is not None and not self._may_keep(rows, ours):
            self.passed_over += 1
            return Converted()
        cut = cut_batch(start, batch.header, wanted, ours)
        if cut.size_bytes > room.bytes_max and not room.at_least_one:
            return Converted(is_whole=False)
        self.batches += 1
        self.left_out_bytes += batch.header.size_bytes - cut.size_bytes
        return Converted(_parts(cut, batch, start), cut.size_bytes)

    def _may_keep(self, rows: PackedCondition, ours: ArrowHeader) -> bool:
        """Whether a batch may have a row that is wanted; in doubt, as of another version, it may."""
        if ours.schema_id != rows.version:
            return True
        self.compared += rows.terms
        return may_keep(rows.condition, ours)


def _parts(cut: CutBatch, batch: StoredBatch, start: bytes) -> tuple[Part, ...]:
    """What has been read already is not read again."""
    return (
        cut.head,
        *(
            memoryview(start)[position : position + length]
            if position + length <= len(start)
            else batch.slice(position, length)
            for position, length in cut.stretches
        ),
    )
