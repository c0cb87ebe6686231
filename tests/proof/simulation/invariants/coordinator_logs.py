"""Reads the records of coordinators out of a replica's log."""

from functools import lru_cache
from typing import Final

from simulation.truth import PIECES_KEPT, Entry, Rows
from sparklog.core.coordinator.actions import StateRecord
from sparklog.model.parts import read_parts
from sparklog.records.envelope import split
from sparklog.records.reading import read_columns
from sparklog.storage.log import Log
from sparklog.wire.coordinator_records.group_offsets import GroupOffsetsCodec

CODEC: Final = GroupOffsetsCodec()


def rows_in(log: Log, entry: Entry) -> Rows:
    """Keys and values of a batch that is in ``log``."""
    read = log.read(entry.base_offset, 1, entry.next_offset, at_least_one_batch=True)
    assert read is not None, entry
    return _rows(read_parts(read.parts))


def records_in(log: Log, entry: Entry) -> tuple[StateRecord, ...]:
    """What a coordinator wrote in that batch."""
    return _records(rows_in(log, entry))


@lru_cache(PIECES_KEPT)
def _rows(batch: bytes) -> Rows:
    return tuple(
        (key, value)
        for columns in read_columns(batch, split(batch))
        for key, value in zip(columns["key"].to_pylist(), columns["value"].to_pylist(), strict=True)
    )


@lru_cache(PIECES_KEPT)
def _records(rows: Rows) -> tuple[StateRecord, ...]:
    decoded = [CODEC.decode(key, value) for key, value in rows]
    records = tuple(one for one in decoded if isinstance(one, StateRecord))
    assert len(records) == len(decoded), decoded
    return records
