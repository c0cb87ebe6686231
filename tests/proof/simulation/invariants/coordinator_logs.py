"""Reads the records of coordinators out of a replica's log."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from simulation.truth import PIECES_KEPT, Entry, Rows
from sparklog.core.coordinator.actions import StateRecord
from sparklog.model.internal_topics import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from sparklog.model.parts import read_parts
from sparklog.records.decoding import read_columns
from sparklog.records.envelope import split
from sparklog.storage.log import Log
from sparklog.wire.coordinator_records.group_offsets import GroupOffsetsCodec
from sparklog.wire.coordinator_records.record_codec import RecordCodec
from sparklog.wire.coordinator_records.transaction_topic import TransactionTopicCodec

CODECS: Final[Mapping[str, RecordCodec]] = {
    GROUP_OFFSETS_TOPIC: GroupOffsetsCodec(),
    TRANSACTION_STATE_TOPIC: TransactionTopicCodec(),
}


def rows_in(log: Log, entry: Entry) -> Rows:
    """Keys and values of a batch that is in ``log``."""
    read = log.read(entry.base_offset, 1, entry.next_offset, at_least_one_batch=True)
    assert read is not None, entry
    return _rows(read_parts(read.parts))


def records_in(log: Log, entry: Entry, topic: str = GROUP_OFFSETS_TOPIC) -> tuple[StateRecord, ...]:
    """What a coordinator wrote in that batch of its topic."""
    return _records(rows_in(log, entry), topic)


@lru_cache(PIECES_KEPT)
def _rows(batch: bytes) -> Rows:
    return tuple(
        (key, value)
        for columns in read_columns(batch, split(batch))
        for key, value in zip(columns["key"].to_pylist(), columns["value"].to_pylist(), strict=True)
    )


@lru_cache(PIECES_KEPT)
def _records(rows: Rows, topic: str) -> tuple[StateRecord, ...]:
    decoded = [CODECS[topic].decode(key, value) for key, value in rows]
    records = tuple(one for one in decoded if isinstance(one, StateRecord))
    assert len(records) == len(decoded), decoded
    return records
