"""The state at the end of a history in the store: leader epochs, and producers.

The ``.state`` object of the last segment has both. If the history was cut within that segment, the object
counts the batches after the cut, too: a producer that sends them again would be taken for a retry, and its
batches would be lost. Then the producers are restored from the state of the segment before and the batches up
to the cut.
"""

from collections.abc import Sequence
from typing import Final

from sparklog.broker.remote_log.copying.lineages import read_page
from sparklog.broker.remote_log.reading.segments import StoredSegment, batches_in, index_of
from sparklog.core.producers.producer_state import CorruptSnapshot, ProducerStates
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.page import ManifestError, PageRef
from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment
from sparklog.core.remote_log.state_object import SegmentState, parse_state
from sparklog.records.envelope import parse_header
from sparklog.records.remote_segment.rest_object import Entry
from sparklog.remote.store import RemoteStore
from sparklog.storage.segments.snapshots import producer_batch

CHUNK_BYTES: Final = 4_194_304


def last_segments(
    store: RemoteStore, remote: RemotePartition, head: Head, count: int = 1
) -> Sequence[RemoteSegment]:
    """The last segments of a head with segments, as many as there are up to ``count``, in order."""
    segments: list[RemoteSegment] = []
    for entry in reversed(head.entries):
        found = read_page(store, remote, entry) if isinstance(entry, PageRef) else (entry,)
        segments[:0] = found
        if len(segments) >= count:
            break
    return segments[-count:]


def read_state(store: RemoteStore, remote: RemotePartition, segment: RemoteSegment) -> SegmentState:
    """The state at the segment's end; ManifestError if the object is not the segment's."""
    return parse_state(segment, store.read(remote.object_name(segment, "state"), 0, segment.state_bytes))


def producers_at_end(store: RemoteStore, remote: RemotePartition, head: Head, now_ms: int) -> ProducerStates:
    """The producers at the end of a head with segments; ManifestError or CorruptBatch for damage."""
    *before, last = last_segments(store, remote, head, 2 if head.is_cut else 1)
    stored = StoredSegment(
        last.base_offset,
        last.end_offset,
        remote.object_name(last, "rest"),
        last.rest_bytes,
        remote.object_name(last, "arrow") if last.arrow_bytes else "",
    )
    entries = index_of(store, stored) if head.is_cut else []
    if not entries or entries[-1].last_offset < last.end_offset:  # no cut within the segment
        return _restored(last, read_state(store, remote, last))
    follows = bool(before) and before[0].end_offset == last.base_offset
    states = _restored(before[0], read_state(store, remote, before[0])) if follows else ProducerStates()
    _replay(
        store, stored, [entry for entry in entries if entry.base_offset < last.end_offset], states, now_ms
    )
    return states


def _replay(
    store: RemoteStore,
    segment: StoredSegment,
    entries: Sequence[Entry],
    states: ProducerStates,
    now_ms: int,
) -> None:
    for batch in batches_in(store, segment, entries, CHUNK_BYTES):
        header = parse_header(batch)
        if header.has_producer:
            states.apply(producer_batch(header, batch), now_ms)


def _restored(segment: RemoteSegment, state: SegmentState) -> ProducerStates:
    try:
        return ProducerStates.restore(state.producers)
    except CorruptSnapshot as error:
        raise ManifestError(f"the .state object of segment {segment.segment_id}: {error}") from error
