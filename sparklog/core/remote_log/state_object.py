"""The ``.state`` object: the state at a segment's end, for readers and for a replica that begins there.

    head, 40 bytes | leader epochs, 12 bytes each | aborted transactions, 32 bytes each | producers

All numbers are little-endian. The producers are a snapshot, as beside a log (docs/format/log-directory.md).
The object has no CRC, because the manifest has its size and its CRC-32C.
"""

import struct
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.core.remote_log.page import ManifestError
from sparklog.core.remote_log.remote_segment import RemoteSegment

MAGIC: Final = b"SPKLSTAT"
VERSION: Final = 1
HEAD: Final = struct.Struct("<8sHHIII16s")
"""Magic, version, 0, count of epochs, count of aborted transactions, bytes of producers, segment id."""
EPOCH: Final = struct.Struct("<iq")
ABORTED: Final = struct.Struct("<qqqq")
assert (HEAD.size, EPOCH.size, ABORTED.size) == (40, 12, 32)


@dataclass(frozen=True, slots=True)
class SegmentState:
    """The state at a segment's end. ``epochs`` are all leader epochs with their start offsets, up to that
    end.

    ``aborted``: the aborted transactions with a record or a marker in the segment. ``producers``: a snapshot.
    """

    epochs: tuple[tuple[int, int], ...]
    aborted: tuple[AbortedTransaction, ...]
    producers: bytes


def build_state(segment_id: str, state: SegmentState) -> bytes:
    counts = (len(state.epochs), len(state.aborted), len(state.producers))
    return b"".join(
        [
            HEAD.pack(MAGIC, VERSION, 0, *counts, bytes.fromhex(segment_id)),
            *(EPOCH.pack(*epoch) for epoch in state.epochs),
            *(ABORTED.pack(*transaction) for transaction in state.aborted),
            state.producers,
        ]
    )


def parse_state(segment: RemoteSegment, data: bytes) -> SegmentState:
    """The state in ``data``; ManifestError if that is not the ``.state`` object of ``segment``."""
    what = f"the .state object of segment {segment.segment_id}"
    if len(data) != segment.state_bytes or crc32c(data) != segment.state_crc or len(data) < HEAD.size:
        raise ManifestError(f"{what} has {len(data)} bytes that are not those that were written")
    magic, version, _, epochs, aborted, producers, segment_id = HEAD.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise ManifestError(f"{what} has version {version}: this release reads {VERSION}; a newer one may")
    aborted_at = HEAD.size + EPOCH.size * epochs
    producers_at = aborted_at + ABORTED.size * aborted
    if producers_at + producers != len(data) or segment_id.hex() != segment.segment_id:
        raise ManifestError(f"{what} is that of another segment")
    return SegmentState(
        tuple((epoch, start) for epoch, start in EPOCH.iter_unpack(data[HEAD.size : aborted_at])),
        tuple(AbortedTransaction(*fields) for fields in ABORTED.iter_unpack(data[aborted_at:producers_at])),
        data[producers_at:],
    )
