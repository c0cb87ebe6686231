"""Removal of records from batches by compaction, for both kinds of payload.

Compaction never moves a record. A batch that loses records keeps its base offset, last offset delta, leader
epoch, producer's fields and codec; the remaining records keep their offsets, so deltas get gaps. A batch that
loses all records may stay as an *empty batch*, an envelope without payload, if its sequence numbers or its
last offset are still needed.

Rows are decoded many at once, as in ``decoding``: ``decode_runs`` yields the key and offset of each row, and
whether it is a tombstone (a record without value). ``Run.rebuild`` builds one batch of a run from the rows
that are kept. Consecutive uncompressed *records* batches form one run.

A *delete horizon* (KIP-534) is the time after which tombstones, or a transaction marker, may be removed:
attribute bit 6 is set and the base timestamp *is* the horizon. The records' timestamp deltas are relative to
it, mostly negative, so readers compute the same timestamps as before.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from sparklog.records.decoding import Batch, is_joint
from sparklog.records.envelope import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Bytes,
    build_envelope,
)
from sparklog.records.filtering.filter_arrow import ArrowRun
from sparklog.records.filtering.filter_records import RecordsRun
from sparklog.records.filtering.run import Run
from sparklog.records.kafka.spans import CHUNK_BYTES, CHUNK_RECORDS

_EMPTY_BATCH_BITS = LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT


def decode_runs(buffer: Bytes, batches: Sequence[Batch]) -> Iterator[Run]:
    """The rows of ``batches``, none of which is empty, in order; CorruptBatch for an unreadable batch."""
    joint: list[Batch] = []
    joint_bytes = joint_records = 0
    end = -1
    for position, header in batches:
        joins = is_joint(header)
        belongs = (
            joins
            and position == end
            and joint_bytes + header.size_bytes <= CHUNK_BYTES
            and joint_records + header.record_count <= CHUNK_RECORDS
        )
        if joint and not belongs:
            yield _joint_run(buffer, joint)
            joint, joint_bytes, joint_records = [], 0, 0
        if joins:
            joint.append((position, header))
            joint_bytes += header.size_bytes
            joint_records += header.record_count
            end = position + header.size_bytes
        else:
            yield decode(memoryview(buffer)[position : position + header.size_bytes], (position, header))
    if joint:
        yield _joint_run(buffer, joint)


def decode(batch: Bytes, origin: Batch) -> Run:
    """The rows of one batch with either kind of payload."""
    if origin[1].is_arrow:
        return ArrowRun.decode(batch, origin)
    return RecordsRun.decode(batch, origin)


def _joint_run(buffer: Bytes, batches: Sequence[Batch]) -> Run:
    first, last = batches[0], batches[-1]
    return RecordsRun.decode_jointly(
        bytes(memoryview(buffer)[first[0] : last[0] + last[1].size_bytes]), first[0], batches
    )


def restamped(batch: Bytes, header: BatchHeader, delete_horizon_ms: int) -> bytes:
    """The batch with a delete horizon."""
    run = decode(batch, (0, header))
    return run.rebuild(0, np.arange(header.record_count), delete_horizon_ms)


def emptied(header: BatchHeader) -> bytes:
    """The batch without its records: an envelope with the offsets and the producer's sequence."""
    return build_envelope(
        b"",
        attributes=header.attributes & _EMPTY_BATCH_BITS,
        record_count=0,
        last_offset_delta=header.last_offset_delta,
        base_timestamp_ms=header.max_timestamp_ms,
        max_timestamp_ms=header.max_timestamp_ms,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
