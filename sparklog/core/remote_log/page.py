"""A page of a manifest: an object that lists segments, and the reference to it in the head.

    head, 56 bytes | an entry of 80 bytes for each segment, in the order of offsets | CRC-32C of all before

All numbers are little-endian. A page is never changed. One that is not full is replaced by a larger one under
another name, and is garbage as soon as no head refers to it. The head has a page's size and CRC, so a reader
never takes a cut, damaged or different page for the right one.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from uuid import UUID

from crc32c import crc32c

from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment, check_id
from sparklog.model.errors import SparklogError

MAGIC: Final = b"SPKLPAGE"
VERSION: Final = 1
SEGMENTS_MAX: Final = 1_024
"""Segments of a full page, which is never written again."""

HEAD: Final = struct.Struct("<8sHHI16s16si4x")
"""Magic, version, length of an entry, count of entries, topic id, page id, partition."""
ENTRY: Final = struct.Struct("<16sqqqQQQIIi4x")
"""Segment id, base offset, end offset, greatest timestamp, sizes of log, .arrow, .rest and .state, CRC of
.state, leader epoch."""
CRC: Final = struct.Struct("<I")
assert (HEAD.size, ENTRY.size) == (56, 80)


class ManifestError(SparklogError):
    """A page or a head cannot be read, so nothing of its partition can be found in the store."""


@dataclass(frozen=True, slots=True)
class PageRef:
    """A reference to a page, with what a reader must know to pass the page over.

    Offsets count all its segments, those removed by retention since included. ``crc`` is the CRC-32C of the
    whole object.
    """

    page_id: str
    base_offset: int
    end_offset: int
    max_timestamp_ms: int
    size_bytes: int
    """Bytes of the batches of its segments in the log, as in ``RemoteSegment``."""
    segment_count: int
    crc: int

    def __post_init__(self) -> None:
        check_id(self.page_id)
        if not 0 <= self.base_offset < self.end_offset or not 0 < self.segment_count <= SEGMENTS_MAX:
            raise ValueError(f"a page has no segments, or too many: {self}")

    @property
    def object_bytes(self) -> int:
        return HEAD.size + ENTRY.size * self.segment_count + CRC.size

    @property
    def is_full(self) -> bool:
        return self.segment_count >= SEGMENTS_MAX


def build_page(
    partition: RemotePartition, page_id: str, segments: Sequence[RemoteSegment]
) -> tuple[PageRef, bytes]:
    """The object of these segments, in the order of offsets, and the reference to it."""
    head = HEAD.pack(
        MAGIC, VERSION, ENTRY.size, len(segments), partition.topic_id.bytes, bytes.fromhex(page_id),
        partition.partition,
    )  # fmt: skip
    before_crc = head + b"".join(map(_pack, segments))
    data = before_crc + CRC.pack(crc32c(before_crc))
    ref = PageRef(
        page_id=page_id,
        base_offset=segments[0].base_offset,
        end_offset=segments[-1].end_offset,
        max_timestamp_ms=max(segment.max_timestamp_ms for segment in segments),
        size_bytes=sum(segment.size_bytes for segment in segments),
        segment_count=len(segments),
        crc=crc32c(data),
    )
    return ref, data


def parse_page(partition: RemotePartition, ref: PageRef, data: bytes) -> tuple[RemoteSegment, ...]:
    """The segments of the page that ``ref`` refers to; ManifestError if ``data`` is not that page."""
    name = partition.page_name(ref.base_offset, ref.page_id)
    if len(data) != ref.object_bytes or crc32c(data) != ref.crc:
        raise ManifestError(
            f"{name} has {len(data)} bytes that are not those that were written: it is damaged"
        )
    magic, version, entry_length, count, topic_id, page_id, number = HEAD.unpack_from(data)
    if magic != MAGIC or version != VERSION or entry_length != ENTRY.size:
        raise ManifestError(f"{name} has version {version}: this release reads {VERSION}; a newer one may")
    said = (UUID(bytes=topic_id), number, page_id.hex(), count)
    if said != (partition.topic_id, partition.partition, ref.page_id, ref.segment_count):
        raise ManifestError(f"{name} is the page of {said}, which is another one")
    positions = range(HEAD.size, len(data) - CRC.size, ENTRY.size)
    try:
        segments = tuple(_unpack(data, position) for position in positions)
    except ValueError as error:
        raise ManifestError(f"{name} names a segment that cannot be: {error}") from None
    for before, segment in pairwise(segments):
        if segment.base_offset < before.end_offset:
            raise ManifestError(f"{name} has {segment.base_offset} behind {before.end_offset}")
    return segments


def _pack(segment: RemoteSegment) -> bytes:
    return ENTRY.pack(
        bytes.fromhex(segment.segment_id), segment.base_offset, segment.end_offset,
        segment.max_timestamp_ms, segment.size_bytes, segment.arrow_bytes, segment.rest_bytes,
        segment.state_bytes, segment.state_crc, segment.leader_epoch,
    )  # fmt: skip


def _unpack(data: bytes, position: int) -> RemoteSegment:
    (
        segment_id, base_offset, end_offset, max_timestamp_ms, size_bytes, arrow_bytes, rest_bytes,
        state_bytes, state_crc, leader_epoch,
    ) = ENTRY.unpack_from(data, position)  # fmt: skip
    return RemoteSegment(
        base_offset=base_offset,
        end_offset=end_offset,
        max_timestamp_ms=max_timestamp_ms,
        size_bytes=size_bytes,
        segment_id=segment_id.hex(),
        leader_epoch=leader_epoch,
        arrow_bytes=arrow_bytes,
        rest_bytes=rest_bytes,
        state_bytes=state_bytes,
        state_crc=state_crc,
    )
