"""Segments and partitions for tests of manifests."""

from uuid import UUID

from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment

ORDERS = RemotePartition("orders", UUID(int=7), 3)


def segment(base: int, end: int, *, time: int | None = None) -> RemoteSegment:
    """Its id is its base offset, its greatest time its last offset unless told otherwise."""
    return RemoteSegment(
        base_offset=base,
        end_offset=end,
        max_timestamp_ms=end - 1 if time is None else time,
        size_bytes=10 * (end - base),
        segment_id=f"{base:032x}",
        leader_epoch=5,
        arrow_bytes=11 * (end - base),
        rest_bytes=500,
        state_bytes=60,
        state_crc=0xFFFFFFFF,
    )
