"""The batches of remote segments, byte for byte, in a few large reads of a store.

A segment's index is at the end of its ``.rest`` object and is read once; the indexes that were used last are
kept. A run of batches then takes one read of ``.rest``, and one of ``.arrow`` for each stretch of bodies that
lie close together. Every batch is compared with its CRC.

A damaged or incomplete batch ends the run before it. It is an error, with the object's name, only as the
first of a run, so that everything before and after it can be read.
"""

import logging
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from sparklog.broker.partition.answers import HistoryRange, HistoryTime
from sparklog.broker.remote_log.reading.runs import Run
from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.model.errors import CorruptBatch, SparklogError
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.model.ports import Guard
from sparklog.records.envelope import parse_header
from sparklog.records.remote_segment.rest_object import Entry, StoredIn, nth_with, open_rest_object, rebuild
from sparklog.remote.store import RemoteStore, RemoteStoreError
from sparklog.storage.segments.segment_search import first_record_from

logger: Final = logging.getLogger(__name__)

ENTRIES_KEPT_MAX: Final = 100_000
"""Entries of all indexes that are kept: some 30 MB."""

GAP_BYTES_MAX: Final = 262_144
ENDS_PASSED_MAX: Final = 100
"""Ends of transactions that a search by time passes over: each is read from the store."""
"""Most bytes between two bodies that are read and dropped, because a second request would take longer."""

Read = Callable[[int, int], bytes]


class HistoryMissing(SparklogError):  # noqa: N818 (the field's word for the thing itself)
    """An offset is in no remote segment, although it is not on the log's disk."""


@dataclass(frozen=True, slots=True)
class HistoryCut:
    """The end of a history that a leader of this epoch cut: an unclean election lost the records after it."""

    leader_epoch: int


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A remote segment with the names of its objects. ``arrow_name`` is empty for a raw segment.

    ``end_offset`` is exclusive. The objects may have batches after it, which are in no log any more.
    ``aborted``: the aborted transactions with records in the segment.
    """

    base_offset: int
    end_offset: int
    rest_name: str
    rest_size: int
    arrow_name: str
    aborted: tuple[AbortedTransaction, ...] = ()


class Catalog(Protocol):
    """The segments that logs have in the store."""

    def segment_for(
        self, topic_id: TopicId, topic_partition: TopicPartition, offset: int, *, is_fresh: bool = False
    ) -> StoredSegment | HistoryCut:
        """The segment that has ``offset``, or the first one after it; may block. Without one HistoryCut if
        the history was cut before ``offset``, otherwise HistoryMissing is raised.

        ``is_fresh``: whether the manifest is read now; otherwise one that was read a moment ago will do.
        """

    def segments_from_time(
        self, topic_id: TopicId, topic_partition: TopicPartition, timestamp_ms: int
    ) -> Iterable[StoredSegment]:
        """The segments with a record of at least this time, in the order of offsets; may block."""


@dataclass(slots=True)
class StoredSegments:
    """The ``HistorySource`` over a store and its catalog; for any number of threads."""

    store: RemoteStore
    catalog: Catalog
    guard: Guard
    """Protects the indexes and their count; never held while the store is read."""
    _indexes: OrderedDict[str, list[Entry]] = field(default_factory=OrderedDict)
    """By the name of the ``.rest`` object, the one used longest ago first."""
    _entry_count: int = 0
    """Entries of all ``_indexes``."""

    def run_from(self, wanted: HistoryRange, offset: int, size: int) -> Run | None:
        """See ``HistorySource``."""
        for is_fresh in (False, True):
            segment = self.catalog.segment_for(
                wanted.topic_id, wanted.topic_partition, offset, is_fresh=is_fresh
            )
            if isinstance(segment, HistoryCut):
                _refuse_later(segment, wanted, offset)
                return None
            name = segment.rest_name
            if segment.base_offset >= wanted.end_offset:  # a hole up to the end, if the manifest is of now
                if is_fresh:
                    return None
                continue
            run = self._run_of(segment, offset, size)
            if run.is_of(wanted, offset):
                return run  # else the manifest may be older than the election that replaced the segment
        raise HistoryMissing(
            f"{name} has another leader epoch at offset {offset} than the log: it is of a log "
            "that an unclean election has replaced"
        )

    def _run_of(self, segment: StoredSegment, offset: int, size: int) -> Run:
        entries = self._entries(segment)
        first = nth_with(entries, offset)
        if first == len(entries):
            raise HistoryMissing(
                f"{segment.rest_name} has no batch with offset {offset}, although it has offsets up to, not "
                f"including, {segment.end_offset}"
            )
        chosen = _within(entries[first:], size)
        try:
            batches = self._batches(segment, chosen)
        except RemoteStoreError:
            if len(chosen) == 1:
                raise
            # The objects may have been cut after the first batch; then that one can still be read.
            batches = self._batches(segment, chosen[:1])
        return _run(chosen[: len(batches)], batches, segment.aborted)

    def first_of_time(self, wanted: HistoryTime) -> tuple[int, int] | None:
        """See ``HistorySource``. As on disk, an end of a transaction is the answer only where many follow."""
        first_end: tuple[int, int] | None = None
        ends = 0
        for segment in self.catalog.segments_from_time(
            wanted.topic_id, wanted.topic_partition, wanted.timestamp_ms
        ):
            entries = self._entries(segment)
            for entry in entries[nth_with(entries, wanted.start_offset) :]:
                if entry.base_offset >= wanted.end_offset:
                    return None
                if entry.max_timestamp_ms < wanted.timestamp_ms:
                    continue
                (batch,) = self._batches(segment, [entry])
                header = parse_header(batch)
                found = first_record_from(batch, header, wanted.timestamp_ms, wanted.start_offset)
                if found is None:
                    continue
                if found[0] >= wanted.end_offset:
                    return None
                if not header.is_control:
                    return found
                first_end, ends = first_end or found, ends + 1
                if ends > ENDS_PASSED_MAX:
                    return first_end
        return None

    def _entries(self, segment: StoredSegment) -> list[Entry]:
        """The index entries of the batches that are in the log."""
        entries = self._index(segment)
        return entries[: bisect_left(entries, segment.end_offset, key=lambda entry: entry.base_offset)]

    def _index(self, segment: StoredSegment) -> list[Entry]:
        with self.guard:
            known = self._indexes.get(segment.rest_name)
            if known is not None:
                self._indexes.move_to_end(segment.rest_name)
                return known
        entries = index_of(self.store, segment)
        with self.guard:
            if segment.rest_name not in self._indexes:
                self._indexes[segment.rest_name] = entries
                self._entry_count += len(entries)
            while self._entry_count > ENTRIES_KEPT_MAX and len(self._indexes) > 1:
                self._entry_count -= len(self._indexes.popitem(last=False)[1])
        return entries

    def _batches(self, segment: StoredSegment, chosen: Sequence[Entry]) -> list[bytes]:
        return _batches(self.store, segment, chosen)


def index_of(store: RemoteStore, segment: StoredSegment) -> list[Entry]:
    """The entries of all batches in a segment's objects; CorruptBatch with the object's name if damaged."""
    try:
        return open_rest_object(_reads(store, segment.rest_name), segment.rest_size)[1]
    except CorruptBatch as error:
        raise CorruptBatch(f"{segment.rest_name}: {error}") from error


def batches_in(
    store: RemoteStore, segment: StoredSegment, entries: Sequence[Entry], size: int
) -> Iterator[bytes]:
    """The batches of these entries, about ``size`` bytes in memory at a time; CorruptBatch at the first
    damaged one.
    """
    done = 0
    while done < len(entries):
        batches = _batches(store, segment, _within(entries[done:], size))
        yield from batches
        done += len(batches)


def _batches(store: RemoteStore, segment: StoredSegment, chosen: Sequence[Entry]) -> list[bytes]:
    """The batches up to the first damaged one; CorruptBatch if no batch precedes it."""
    parts = [(entry.position, entry.length) for entry in chosen]
    bodies = [(entry.body_position, entry.body_length) for entry in chosen if entry.place == StoredIn.SPLIT]
    rest = _Stretches(_reads(store, segment.rest_name), parts)
    arrow = _Stretches(_reads(store, segment.arrow_name), bodies)
    batches: list[bytes] = []
    for entry in chosen:
        try:
            batches.append(rebuild(entry, rest.read, arrow.read))
        except CorruptBatch as error:
            if not batches:
                raise CorruptBatch(f"{segment.rest_name} or {segment.arrow_name}: {error}") from error
            logger.warning("%s or %s: %s", segment.rest_name, segment.arrow_name, error)
            break
    return batches


def _reads(store: RemoteStore, name: str) -> Read:
    return lambda start, length: store.read(name, start, length)


def _refuse_later(cut: HistoryCut, wanted: HistoryRange, offset: int) -> None:
    """Refuse if a later leader than this replica knows made the cut: it may have records after it."""
    if cut.leader_epoch > wanted.leader_epoch:
        raise HistoryMissing(
            f"{wanted.topic_partition} has no history from offset {offset} on since leader epoch "
            f"{cut.leader_epoch}; this broker has not heard yet of that, and is in {wanted.leader_epoch}"
        )


class _Stretches:
    """Ranges of one object, in growing order. Those that lie close together are read at once."""

    def __init__(self, read: Read, ranges: Sequence[tuple[int, int]]) -> None:
        self._pieces: list[tuple[int, bytes]] = []
        start = end = -1
        for position, length in ranges:
            if start >= 0 and position - end <= GAP_BYTES_MAX:
                end = position + length
                continue
            if start >= 0:
                self._pieces.append((start, read(start, end - start)))
            start, end = position, position + length
        if start >= 0:
            self._pieces.append((start, read(start, end - start)))

    def read(self, position: int, length: int) -> bytes:
        start, data = next(piece for piece in reversed(self._pieces) if piece[0] <= position)
        return data[position - start : position - start + length]


def _within(entries: Sequence[Entry], size: int) -> list[Entry]:
    """The first entries, at least one, whose batches have about ``size`` bytes."""
    chosen: list[Entry] = []
    total = 0
    for entry in entries:
        total += entry.length + entry.body_length
        if chosen and total > size:
            break
        chosen.append(entry)
    return chosen


def _run(entries: Sequence[Entry], batches: Sequence[bytes], aborted: Sequence[AbortedTransaction]) -> Run:
    ends: list[int] = []
    for batch in batches:
        ends.append((ends[-1] if ends else 0) + len(batch))
    first, last = entries[0].base_offset, entries[-1].last_offset
    return Run(
        first,
        b"".join(batches),
        tuple(entry.last_offset for entry in entries),
        tuple(ends),
        tuple(parse_header(batch).leader_epoch for batch in batches),
        tuple(
            transaction
            for transaction in aborted
            if transaction.first_offset <= last and transaction.last_offset >= first
        ),
    )
