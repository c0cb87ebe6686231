"""Which records and batches of a chunk of the log survive a round, and their new bytes.

A batch that loses no record is copied unchanged, and so is every batch beyond the round's end. Rows are
judged a run at a time; only batches that lose records are rebuilt one by one.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import pyarrow as pa

from sparklog.core.compaction import (
    IfEmpty,
    LastOfProducer,
    MarkerFate,
    TransactionSurvey,
    if_empty,
    marker_fate,
)
from sparklog.records.decoding import Batch
from sparklog.records.envelope import DELETE_HORIZON_BIT, BatchHeader, Bytes, parse_header
from sparklog.records.filtering.filter import decode_runs, emptied, restamped
from sparklog.records.filtering.run import Booleans, Run
from sparklog.records.row_columns import Int64s
from sparklog.storage.cleaner.offset_map import OffsetMap

Piece = tuple[Bytes, BatchHeader]
"""A batch to be written."""


def delete_horizon_ms(header: BatchHeader) -> int | None:
    return header.base_timestamp_ms if header.attributes & DELETE_HORIZON_BIT else None


class Survivors:
    """Selects the batches of one new segment.

    ``segment_end``: the segment's exclusive end offset. ``end``: the round has learned the keys below it.
    """

    def __init__(
        self,
        offset_map: OffsetMap,
        survey: TransactionSurvey,
        producers: Mapping[int, LastOfProducer],
        epoch_starts: AbstractSet[int],
        *,
        end: int,
        segment_end: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self.changed_nothing = True
        self.records_read = 0
        self.records_kept = 0
        self._map = offset_map
        self._survey = survey
        self._producers = producers
        self._epoch_starts = epoch_starts
        self._end = end
        self._segment_end = segment_end
        self._now_ms = now_ms
        self._horizon_ms = now_ms + delete_retention_ms

    def of(self, buffer: bytes, batches: Sequence[Batch]) -> list[Piece]:
        """The surviving batches, in order; ``batches`` are positions in ``buffer`` and envelopes."""
        left: dict[int, Piece | None] = {}
        data: list[Batch] = []
        for position, header in batches:
            batch = memoryview(buffer)[position : position + header.size_bytes]
            self.records_read += header.record_count
            if header.base_offset >= self._end:
                left[position] = (batch, header)
            elif header.is_control:
                left[position] = self._marker(batch, header)
            elif not header.record_count:
                left[position] = (batch, header) if self._is_needed(header) else None
            elif self._is_aborted(header):
                left[position] = self._without_records(header)
            else:
                data.append((position, header))
        for run in decode_runs(buffer, data):
            self._judge(buffer, run, left)
        pieces = [piece for position, _ in batches if (piece := left[position]) is not None]
        self.records_kept += sum(header.record_count for _, header in pieces)
        self.changed_nothing &= [header for _, header in pieces] == [header for _, header in batches]
        return pieces

    def _judge(self, buffer: bytes, run: Run, left: dict[int, Piece | None]) -> None:
        kept = self._kept_rows(run)
        tombstones = kept & run.is_tombstone
        firsts = run.first_rows[:-1]
        counts = np.add.reduceat(kept, firsts, dtype=np.int64).tolist()
        with_tombstones = np.logical_or.reduceat(tombstones, firsts).tolist()
        for nth, (position, header) in enumerate(run.batches):
            gets_horizon = with_tombstones[nth] and delete_horizon_ms(header) is None
            if not counts[nth]:
                left[position] = self._without_records(header)
            elif counts[nth] == header.record_count and not gets_horizon:
                left[position] = (memoryview(buffer)[position : position + header.size_bytes], header)
            else:
                first = int(run.first_rows[nth])
                rows = first + np.flatnonzero(kept[first : first + header.record_count])
                rebuilt = run.rebuild(nth, rows, self._horizon_ms if gets_horizon else None)
                left[position] = (rebuilt, parse_header(rebuilt))

    def _kept_rows(self, run: Run) -> Booleans:
        """The rows to keep: the latest of each key, but no tombstone past its delete horizon."""
        kept: Booleans = run.offsets >= self._latest(run.keys)
        past = [(horizon := delete_horizon_ms(header)) is not None and horizon <= self._now_ms
                for _, header in run.batches]  # fmt: skip
        if any(past):
            kept &= ~(run.is_tombstone & np.repeat(past, np.diff(run.first_rows)))
        return kept

    def _latest(self, keys: Any) -> Int64s:
        if not keys.null_count:
            return self._map.latest(keys)
        latest = np.full(len(keys), np.iinfo(np.int64).max)
        keyed = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
        latest[keyed] = self._map.latest(keys.take(pa.array(keyed)))
        return latest

    def _is_aborted(self, header: BatchHeader) -> bool:
        return header.is_transactional and self._survey.is_aborted(header.producer_id, header.base_offset)

    def _marker(self, batch: memoryview, header: BatchHeader) -> Piece | None:
        fate = marker_fate(
            has_data=self._survey.has_data(header.base_offset),
            is_empty=not header.record_count,
            delete_horizon_ms=delete_horizon_ms(header),
            now_ms=self._now_ms,
        )
        if fate is MarkerFate.STAYS:
            return batch, header
        if fate is MarkerFate.GOES:
            return self._without_records(header)
        stamped = restamped(batch, header, self._horizon_ms)
        return stamped, parse_header(stamped)

    def _without_records(self, header: BatchHeader) -> Piece | None:
        """The batch without its records: an empty envelope, or None if that is not needed."""
        if not self._is_needed(header):
            return None
        empty = emptied(header)
        return empty, parse_header(empty)

    def _is_needed(self, header: BatchHeader) -> bool:
        return (
            if_empty(
                last_offset=header.last_offset,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                is_control=header.is_control,
                producers=self._producers,
                segment_end=self._segment_end,
                begins_epoch=header.base_offset in self._epoch_starts,
            )
            is IfEmpty.KEEP
        )
