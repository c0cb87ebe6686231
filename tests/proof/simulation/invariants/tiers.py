"""What is true of a remote store, its manifests, and the disks beside it.

The truth of a history is the committed log, as of everything else; so whatever a manifest adds is compared
with that at once (``copies``), also what no consumer reads. A manifest is the head in ZooKeeper with its
pages, and changes only with the head.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from simulation.invariants.copies import Copy
from simulation.invariants.derived import check_producers_at_rest
from simulation.invariants.invariant import Invariant, Violation
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.broker.partition.partition import Partition
from sparklog.broker.remote_log.copying.heads import head_path
from sparklog.core.remote_log.head import Head, decode_head
from sparklog.core.remote_log.page import ManifestError, PageRef, parse_page
from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment
from sparklog.model.ids import TopicId, TopicPartition
from sparklog.testing.memory_zookeeper import ZooKeeperTree

CLOCKS: Final = 0.9
"""Of a span that the slowest clock measures: clocks drift by up to 5 %."""

Key = tuple[TopicPartition, TopicId]


@dataclass(slots=True)
class SeenHead:
    """A head as it was read last, and all to which it leads."""

    version: int
    head: Head
    segments: dict[str, RemoteSegment] = field(default_factory=dict)
    """By id: those that are not wholly below the start."""
    names: set[str] = field(default_factory=set)
    """Of their objects, and of the pages."""
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    """The batches of each segment."""


@dataclass(slots=True)
class TierRules(Invariant):
    """``HeadsNameWholeObjects``: whatever a head leads to is there, and what it adds is whole.
    ``HeadsAreOfTheLeader``: what a head adds was copied by the leader of that moment. ``HistoriesGoOn``: a
    manifest begins where it began, or later, and ends where it ended, or later; only what an election lost is
    cut. ``HistoriesAreOfTheLog``: at rest, whatever heads lead to is what is committed. ``NamedObjectsStay``:
    nobody deletes what a head leads to. ``GarbageHasAGrace``: what no head leads to stays for ``grace_ms``,
    unless its records are no longer in the log, or its uploader gives up what no head ever led to.
    ``LocalDeletionFollowsTheHead``: what left a disk was deleted, or a head leads to it.
    """

    objects: Mapping[str, bytes]
    """Of the store, by name."""
    grace_ms: int
    now_ms: Callable[[], int]
    reach: Callable[[str], None] = lambda mark: None
    is_silent: bool = False
    """Whether nobody says what the heads are: then nothing of the store is judged."""
    _seen: dict[Key, SeenHead] = field(default_factory=dict)
    _unnamed_since_ms: dict[str, int] = field(default_factory=dict)
    """Of the objects that must not be deleted yet."""
    _uploaders: dict[str, str] = field(default_factory=dict)
    """The process that uploaded an object to which no head has led yet."""
    _gone: set[TopicId] = field(default_factory=set)
    _doomed: set[str] = field(default_factory=set)
    """Of topics that are deleted: what their heads led to then."""

    # ---- heads ---------------------------------------------------------------------------------------------

    def look_at_zookeeper(self, tree: ZooKeeperTree, truths: Iterable[PartitionTruth]) -> None:
        """After a transaction, and after the partitions' states were looked at."""
        for truth in truths:
            remote = _remote(truth)
            node, before = tree.get(head_path(remote)), self._seen.get(_key(truth))
            if node is None or (before is not None and before.version == node.stat.version):
                continue
            found = SeenHead(node.stat.version, decode_head(head_path(remote), node.data))
            self._follow(truth, remote, found, before)
            self._note_names(before, found)
            self._seen[_key(truth)] = found
            truth.stored_end = max(truth.stored_end, found.head.end_offset or 0)
            truth.stored_start = found.head.start_offset
            truth.stored = [one for entries in found.entries.values() for one in entries]

    def _follow(
        self, truth: PartitionTruth, remote: RemotePartition, found: SeenHead, before: SeenHead | None
    ) -> None:
        """Find all to which a head leads, and judge what it adds."""
        head = found.head
        if before is not None and not _goes_on(before.head, head):
            self._judge_cut(truth, before, head)
        for segment in self._segments(truth, remote, found):
            found.segments[segment.segment_id] = segment
            found.names.update(remote.object_names(segment))
            if before is None or segment.segment_id not in before.segments:
                self._judge_addition(truth, segment)
                copy = Copy(truth, remote, segment, self.objects, head.start_offset)
                copy.judge()
                if copy.is_of_columns:
                    self.reach("a segment of columns was copied")
                found.entries[segment.segment_id] = Copy(truth, remote, segment, self.objects, 0).entries()
            else:
                entries = before.entries[segment.segment_id]
                found.entries[segment.segment_id] = [
                    one for one in entries if one.base_offset < segment.end_offset
                ]
        missing = sorted(found.names.difference(self.objects))
        if missing:
            what = f"a head leads to {missing[0]}, which is not there"
            raise _violation("HeadsNameWholeObjects", truth, what)

    def _judge_cut(self, truth: PartitionTruth, before: SeenHead, head: Head) -> None:
        """It begins with a batch that an election lost."""
        end = head.start_offset if head.end_offset is None else head.end_offset
        first = max(end, before.head.start_offset)
        cut = (one for some in before.entries.values() for one in some if one.next_offset > first)
        entry = next(cut, None)
        if entry is None or truth.committed_at(entry.base_offset) == entry or not truth.was_lost(entry):
            raise _violation(
                "HistoriesGoOn",
                truth,
                f"a head from {before.head.start_offset} to {before.head.end_offset} was replaced by one "
                f"from {head.start_offset} to {head.end_offset}; the first batch that is cut is {entry}",
            )
        self.reach("a history was cut behind an election that lost records")

    def _segments(
        self, truth: PartitionTruth, remote: RemotePartition, found: SeenHead
    ) -> Iterator[RemoteSegment]:
        """Those that are not wholly below the start."""
        for place in found.head.entries:
            segments: Iterable[RemoteSegment] = (place,) if isinstance(place, RemoteSegment) else ()
            if isinstance(place, PageRef):
                name = remote.page_name(place.base_offset, place.page_id)
                found.names.add(name)
                self.reach("a head has a page")
                try:
                    segments = parse_page(remote, place, self.objects.get(name, b""))
                except ManifestError as error:
                    what = f"a head leads to a page that is not whole: {error}"
                    raise _violation("HeadsNameWholeObjects", truth, what) from error
            yield from (one for one in segments if one.end_offset > found.head.start_offset)

    def _judge_addition(self, truth: PartitionTruth, segment: RemoteSegment) -> None:
        self.reach("a segment was copied")
        if truth.is_raw:
            self.reach("a raw segment was copied")
        state = truth.state
        if state is not None and segment.leader_epoch != state.leader_epoch:
            what = f"a copy of epoch {segment.leader_epoch} came into a head in epoch {state.leader_epoch}"
            raise _violation("HeadsAreOfTheLeader", truth, what)

    # ---- objects -------------------------------------------------------------------------------------------

    def _note_names(self, before: SeenHead | None, found: SeenHead) -> None:
        for name in found.names:
            self._unnamed_since_ms.pop(name, None)
            self._uploaders.pop(name, None)
        if before is not None and before.head.start_offset == found.head.start_offset:
            self._unnamed_since_ms.update(dict.fromkeys(before.names - found.names, self.now_ms()))

    def on_put(self, name: str, process: str) -> None:
        """An object has come."""
        self._unnamed_since_ms[name] = self.now_ms()
        self._uploaders[name] = process

    def on_delete(self, name: str, process: str) -> None:
        """Somebody deletes an object."""
        if self.is_silent:
            return
        since_ms = self._unnamed_since_ms.pop(name, None)
        is_early = since_ms is not None and self.now_ms() - since_ms < CLOCKS * self.grace_ms
        is_taken_back = self._uploaders.pop(name, None) == process
        if is_early and not is_taken_back and not self._is_late(name):
            what = f"{name} is deleted; no head leads to it since {since_ms} ms, now it is {self.now_ms()} ms"
            raise Violation("GarbageHasAGrace", what)
        for (topic_partition, _), seen in self._seen.items():
            if name in seen.names:
                what = f"{topic_partition}: {name} is deleted, to which the head leads"
                raise Violation("NamedObjectsStay", what)

    def forget(self, truth: PartitionTruth) -> None:
        """Its topic goes, and its objects must."""
        seen = self._seen.pop(_key(truth), None)
        self._doomed |= set() if seen is None else seen.names
        self._gone.add(truth.topic_id)

    # ---- disks and readers ---------------------------------------------------------------------------------

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        if view.log_start > max(truth.stored_end, truth.start_max, truth.forgiven_end):
            raise _violation(
                "LocalDeletionFollowsTheHead",
                truth,
                f"the disk of broker {view.broker_id} begins at {view.log_start}; heads led up to "
                f"{truth.stored_end} only",
            )

    def on_read(self, truth: PartitionTruth, entry: Entry) -> None:
        disks = [view.log_start for view in truth.views.values() if view.log is not None]
        if disks and entry.base_offset < min(*disks, truth.stored_end):
            self.reach("a consumer was given what only a store had")

    # ---- at rest -------------------------------------------------------------------------------------------

    def unrest(self, truths: Iterable[PartitionTruth]) -> str | None:
        """What is still to be copied, or to be deleted."""
        for truth in truths:
            if (trouble := self._lag(truth)) is not None:
                return f"{truth.topic_partition}: {trouble}"
        named = set[str]().union(*(seen.names for seen in self._seen.values()))
        if doomed := sorted(self._doomed.intersection(self.objects)):
            return f"{len(doomed)} objects are of a topic that was deleted, such as {doomed[0]}"
        garbage = sorted(self.objects.keys() - named)
        return f"{len(garbage)} objects are in no log, such as {garbage[0]}" if garbage else None

    def _is_late(self, name: str) -> bool:
        """Whether it is of a deleted topic, and no head ever led to it: nobody may know of it any more."""
        return any(topic_id.hex in name for topic_id in self._gone)

    def _lag(self, truth: PartitionTruth) -> str | None:
        leader = None if truth.state is None else truth.views.get(truth.state.leader)
        if leader is None or leader.log is None or not leader.log.config.remote_storage:
            return None
        if truth.rots(leader.member):
            return None  # what is damaged is not copied
        seen = self._seen.get(_key(truth))
        end = 0 if seen is None else seen.head.end_offset or 0
        sealed = [one for one in leader.log.segments[:-1] if one.end_offset > leader.history_start]
        if sealed and sealed[-1].end_offset > end:
            return f"it is copied up to {end} of {sealed[-1].end_offset}"
        if seen is not None and seen.head.entries and seen.head.start_offset < leader.history_start:
            return f"it begins at {leader.history_start}; its head at {seen.head.start_offset}"
        return None

    def check_at_rest(self, truths: Iterable[PartitionTruth]) -> None:
        """Every replica knows the producers of the whole history, and that is what is committed."""
        for truth in truths:
            seen = self._seen.get(_key(truth))
            for segment in () if seen is None else seen.segments.values():
                Copy(truth, _remote(truth), segment, self.objects, 0).judge_batches("HistoriesAreOfTheLog")
            for broker_id in truth.state.replicas if truth.state is not None else ():
                check_producers_at_rest(truth, truth.view(broker_id))


def _goes_on(before: Head, head: Head) -> bool:
    return before.start_offset <= head.start_offset and (
        before.end_offset is None
        or before.end_offset <= head.start_offset
        or (head.end_offset is not None and before.end_offset <= head.end_offset)
    )


def _key(truth: PartitionTruth) -> Key:
    return truth.topic_partition, truth.topic_id


def _remote(truth: PartitionTruth) -> RemotePartition:
    topic, number = truth.topic_partition
    return RemotePartition(topic, truth.topic_id, number)


def _violation(rule: str, truth: PartitionTruth, what: str) -> Violation:
    return Violation(rule, f"{truth.topic_partition}: {what}")
