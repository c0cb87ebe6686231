"""Batches on their way into a log: stamped by a leader, or checked by a follower to continue its own."""

from collections.abc import Sequence

from sparklog.records.envelope import BatchHeader, stamp
from sparklog.storage.log import Log

Batches = Sequence[tuple[int, BatchHeader]]
"""Headers, each with the position of its batch in a buffer."""


def continuing(batches: Batches, end_offset: int, epochs: tuple[int, int]) -> Batches:
    """The first of ``batches``, as far as they go on from ``end_offset``, with epochs in that range."""
    lowest, highest = epochs
    for index, (_, header) in enumerate(batches):
        if header.base_offset < end_offset or not lowest <= header.leader_epoch <= highest:
            return batches[:index]
        end_offset, lowest = header.next_offset, header.leader_epoch
    return batches


def begins_within(log: Log, header: BatchHeader, fetch_offset: int) -> bool:
    """Whether a follower's ``log`` is empty, and its leader's begins within this batch, after a deletion."""
    is_empty = log.log_start_offset == log.log_end_offset
    return is_empty and header.base_offset < fetch_offset <= header.last_offset


def whole(records: bytes | memoryview, batches: Batches) -> bytes | memoryview:
    """``records`` up to the end of the last of ``batches``."""
    position, header = batches[-1]
    end = position + header.size_bytes
    return records if end == len(records) else memoryview(records)[:end]


def stamp_all(
    records: bytearray | memoryview, batches: Batches, base_offset: int, leader_epoch: int
) -> list[tuple[int, BatchHeader]]:
    """Write offsets and epoch into each batch in place; returns the headers as they now are."""
    stamped: list[tuple[int, BatchHeader]] = []
    for position, header in batches:
        stamp(records, position, base_offset, leader_epoch)
        header = header._replace(base_offset=base_offset, leader_epoch=leader_epoch)
        stamped.append((position, header))
        base_offset = header.next_offset
    return stamped
