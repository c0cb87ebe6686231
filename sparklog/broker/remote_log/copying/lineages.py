"""Ends of histories of a broker's partitions, with their leader epochs, for ``core.remote_log.lineage``.

Only a log that lacks the leader epoch of the last copy needs the ``.state`` object of the last segment: a new
leader's, once, and a follower's as long as nothing is written. An object that cannot be read raises, so that
nothing is cut, copied or deleted.
"""

from dataclasses import dataclass, field, replace

from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.lineage import Lineage
from sparklog.core.remote_log.page import PageRef, parse_page
from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment
from sparklog.core.remote_log.state_object import parse_state
from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.ids import TopicId
from sparklog.remote.store import RemoteStore


@dataclass(slots=True)
class Lineages:
    """The lineages of partitions, by their last segments."""

    _known: dict[tuple[TopicId, int], tuple[RemoteSegment, Lineage]] = field(default_factory=dict)
    """The last segment of each partition's history as of the last call, and its lineage."""

    def of(self, store: RemoteStore, remote: RemotePartition, head: Head, own: EpochHistory) -> Lineage:
        """The lineage of a head with segments, for a log with the epochs ``own``."""
        key = (remote.topic_id, remote.partition)
        segment, lineage = self._known.get(key, (None, None))
        last = head.entries[-1]
        if isinstance(last, PageRef) or last != segment or lineage is None:
            segment = read_page(store, remote, last)[-1] if isinstance(last, PageRef) else last
            lineage = Lineage(segment.leader_epoch, segment.end_offset)
        if lineage.needs_epochs(own):
            data = store.read(remote.object_name(segment, "state"), 0, segment.state_bytes)
            epochs = parse_state(segment, data).epochs
            # The object of a segment that was cut also has the epochs after the cut.
            lineage = replace(
                lineage, epochs=tuple(epoch for epoch in epochs if epoch[1] < segment.end_offset)
            )
        self._known[key] = (segment, lineage)
        return lineage


def read_page(store: RemoteStore, remote: RemotePartition, page: PageRef) -> tuple[RemoteSegment, ...]:
    """The segments of a page; ManifestError if the object is not the page that the head refers to."""
    name = remote.page_name(page.base_offset, page.page_id)
    return parse_page(remote, page, store.read(name, 0, page.object_bytes))
