"""Copies the segments that this broker leads to the remote store, and deletes them when they leave the log.

One loop takes rounds over the partitions, step by step (``core.remote_log.copy_steps``), and searches for
garbage, too (``garbage_search``). A partition that fails is tried again in the next round, and its segments
stay on disk until then; the same holds for a store that does not answer. Uploads keep to
``remote.log.manager.copy.max.bytes.per.second``.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from crc32c import crc32c

from sparklog.broker.partition.answers import StoreShare
from sparklog.broker.partition.partition import Partition
from sparklog.broker.remote_log.copying.garbage_search import GarbageSearch, names_of, remote_of
from sparklog.broker.remote_log.copying.heads import (
    Leadership,
    StoredHead,
    note_topic,
    read_head,
    write_head,
)
from sparklog.broker.remote_log.copying.lineages import Lineages, read_page
from sparklog.broker.remote_log.copying.segment_source import LogChanged, LogFacts, SegmentSource, facts_of
from sparklog.broker.remote_log.copying.survey import Survey, survey
from sparklog.broker.remote_log.copying.troubles import Troubles, is_of_one_object
from sparklog.core.remote_log.copy_steps import (
    BeginOnDisk,
    CopySegment,
    CutBack,
    ForgetBelow,
    Gap,
    SharedHistory,
    Step,
    Strange,
    WritePage,
    next_step,
)
from sparklog.core.remote_log.head import Head, segments_before
from sparklog.core.remote_log.page import ManifestError, PageRef, build_page
from sparklog.core.remote_log.reach import OffsetRange
from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment
from sparklog.core.remote_log.state_object import build_state
from sparklog.model.errors import SparklogError
from sparklog.model.ids import NO_EPOCH, BrokerId, TopicPartition
from sparklog.model.loops import Loop, Pause
from sparklog.model.time import Clock
from sparklog.model.zookeeper import ZooKeeper, ZooKeeperError
from sparklog.records.remote_segment.build import SegmentBuilder
from sparklog.records.remote_segment.identity import SegmentIdentity
from sparklog.remote.store import RemoteStore, RemoteStoreError
from sparklog.storage.log import Log

logger: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class CopyStatistics:
    """The copier's work since the start of the broker."""

    segments: int = 0
    bytes: int = 0
    failures: int = 0
    lag_bytes: int = 0
    """Bytes of sealed segments led here that are not in the store, as of the last round that could tell."""
    unreadable: int = 0
    """Partitions led here with something gone or damaged in the store, as of the last round."""


@dataclass(frozen=True, slots=True)
class CopierPorts:
    """The copier's ports."""

    zookeeper: ZooKeeper
    open_store: Callable[[], RemoteStore]
    """Opens the store; SparklogError if the store is unfit or another cluster's."""
    url: str
    clock: Clock
    new_id: Callable[[], str]
    pace: Callable[[int], None]
    """Pauses after so many bytes; raises ``CopyStopped`` if the broker stops."""


class CopyStopped(SparklogError):  # noqa: N818 (no error: the broker stops)
    """The broker stops in the middle of a copy."""


@dataclass(slots=True)
class RemoteCopier:
    """The copier of one broker."""

    broker: BrokerId
    partitions: Callable[[], list[Partition]]
    ports: CopierPorts
    interval_ms: int
    statistics: CopyStatistics = field(default_factory=CopyStatistics)
    _store: RemoteStore | None = None
    """None until a round has opened it; then it stays."""
    _lineages: Lineages = field(default_factory=Lineages)
    _troubles: Troubles = field(default_factory=Troubles)
    _garbage: GarbageSearch = field(init=False)

    def __post_init__(self) -> None:
        ports = self.ports
        self._garbage = GarbageSearch(self.broker, self.partitions, ports.zookeeper, ports.clock, ports.url)

    def suspect(self, topic_partition: TopicPartition) -> None:
        """Check this partition's objects in the next round, because a read of one has failed."""
        self._garbage.losses.suspect(topic_partition)

    def loop(self) -> Loop:
        """Rounds, with a pause after each."""
        while True:
            yield from self._round()
            yield Pause(self.interval_ms)

    def _round(self) -> Loop:
        led = [partition for partition in self.partitions() if partition.is_leader]
        try:
            store = self._open()
            for partition in led:
                with self._troubles.of(partition.topic_partition):
                    yield from self._copy(store, partition)
            yield from self._garbage.remove_disabled(store)
            yield from self._garbage.remove_deleted_topics(store)
            self._garbage.look(store)
            self._count_unreadable([partition.topic_partition for partition in led])
        except CopyStopped:
            logger.info("copying to the remote store stops with the broker")
            return
        except (OSError, SparklogError) as error:
            # The store or ZooKeeper does not answer; the other partitions would only wait as long.
            self._note_failure("the remote store", error)
        self._note_shares(led)

    def _note_shares(self, led: list[Partition]) -> None:
        """Report each partition's share, also while the store is away. If ZooKeeper does not answer, the
        figures of the last round stay.
        """
        lag_bytes = 0
        try:
            for partition in led:
                share = self._share(partition)
                if share is not None:
                    partition.note_store_share(share)
                    lag_bytes += max(0, share.waiting_bytes)
        except ZooKeeperError as error:
            logger.info("how far copies lag is unknown: %s", error)
        else:
            self.statistics.lag_bytes = lag_bytes

    def _copy(self, store: RemoteStore, partition: Partition) -> Loop:
        """Take all steps for one partition. An error of its own does not keep the others waiting."""
        try:
            while self._advance(store, partition):
                yield Pause(0)
        except (RemoteStoreError, ManifestError, ZooKeeperError, CopyStopped):
            raise
        except LogChanged as changed:
            logger.info("a copy ends: %s", changed)
        except (OSError, SparklogError) as error:
            self._note_failure(f"the copy of {partition.topic_partition}", error)

    def _count_unreadable(self, led: list[TopicPartition]) -> None:
        found: set[TopicPartition] = set()
        for known in (self._troubles, self._garbage.troubles, self._garbage.losses):
            known.forget_all_but(led)
            found |= known.partitions
        self.statistics.unreadable = len(found)

    def _open(self) -> RemoteStore:
        if self._store is None:
            self._store = self.ports.open_store()
        return self._store

    def _note_failure(self, what: str, error: Exception) -> None:
        self.statistics.failures += 1
        logger.error("%s fails, and is tried again: %s", what, error)

    # One step

    def _advance(self, store: RemoteStore, partition: Partition) -> bool:
        """Take a step for a partition that is led here; whether there may be another."""
        # Read before the facts: a later epoch's log would be copied under an earlier epoch, which fails.
        leadership = Leadership(self.broker, partition.leader_epoch)
        facts = partition.inspect(facts_of) if partition.is_leader else None
        given_up = partition.store_given_up_in_epoch
        if facts is None or partition.awaits_history:
            return False
        work = _Work(self.ports, store, partition, leadership, self.statistics)
        stored = read_head(self.ports.zookeeper, work.remote)
        head = Head(work.remote.topic_id, self.ports.url) if stored is None else stored.head
        if not head.entries:  # an empty history may begin in another store
            head = replace(head, url=self.ports.url)
        if head.url != self.ports.url:
            raise SparklogError(f"{partition.topic_partition}: {_elsewhere(head.url, self.ports.url)}")
        step = next_step(
            head,
            facts.sealed,
            facts.reach,
            shared=self._shared(store, work.remote, head, facts, given_up),
            copies=facts.copies,
        )
        return step is not None and work.carry_out(
            step, StoredHead(head, None if stored is None else stored.version)
        )

    def _shared(
        self, store: RemoteStore, remote: RemotePartition, head: Head, facts: LogFacts, given_up: int
    ) -> SharedHistory:
        if not head.entries:
            return SharedHistory(None)
        lineage = self._lineages.of(store, remote, head, facts.epochs)
        return SharedHistory(
            lineage.end_shared_with(facts.epochs, facts.log_end_offset),
            lineage.may_be_cut_by(facts.epochs, facts.log_end_offset, given_up),
        )

    def _share(self, partition: Partition) -> StoreShare | None:
        """The part of a log in the store, and the part that waits for a copy; None if neither is known."""
        leader_epoch = partition.leader_epoch  # read first, so that a later log's share is not taken for it
        facts = partition.inspect(facts_of) if partition.is_leader else None
        if facts is None or partition.awaits_history:
            return None
        trouble = self._trouble_of(partition.topic_partition)
        try:
            stored = read_head(self.ports.zookeeper, remote_of(partition))
        except ManifestError as error:
            return StoreShare(leader_epoch, trouble=trouble or str(error))
        head = Head(partition.topic_id, self.ports.url) if stored is None else stored.head
        if head.entries and head.url != self.ports.url:
            trouble = _elsewhere(head.url, self.ports.url)
        end = head.end_offset or 0
        waiting = (
            [segment.size_bytes for segment in facts.sealed if segment.end_offset > end]
            if facts.copies
            else []
        )
        return StoreShare(
            leader_epoch,
            max(head.start_offset, head.entries[0].base_offset) if head.entries else -1,
            -1 if head.end_offset is None else head.end_offset,
            head.size_bytes,
            len(waiting),
            sum(waiting),
            trouble,
        )

    def _trouble_of(self, topic_partition: TopicPartition) -> str:
        known = (self._garbage.losses, self._troubles, self._garbage.troubles)
        return next(filter(None, (troubles.reported(topic_partition) for troubles in known)), "")


def _elsewhere(url: str, configured_url: str) -> str:
    return (
        f"its history is in {url}, and remote.log.storage.url={configured_url}: set it back, as nothing of "
        "it is here"
    )


@dataclass(slots=True)
class _Work:
    """A step for one partition, in the leader epoch in which it began."""

    ports: CopierPorts
    store: RemoteStore
    partition: Partition
    leadership: Leadership
    statistics: CopyStatistics
    remote: RemotePartition = field(init=False)

    def __post_init__(self) -> None:
        self.remote = remote_of(self.partition)

    def carry_out(self, step: Step, stored: StoredHead) -> bool:
        """Carry out the step; False if another leader replaced this one, or the log has changed."""
        match step:
            case CopySegment(offsets):
                self._report_hole(stored.head, offsets.base_offset)
                return self._copy(offsets, stored)
            case WritePage():
                return self._write(stored.head.with_page(self._put_page(stored.head)), stored)
            case ForgetBelow(start_offset):
                return self._forget_below(start_offset, stored)
            case CutBack(end_offset, resumes_at):
                return self._cut_back(end_offset, resumes_at, stored)
            case BeginOnDisk(local_start_offset):
                return self._begin_on_disk(local_start_offset, stored)
            case Strange(local_start_offset):
                raise SparklogError(
                    f"{self.partition.topic_partition} cannot be copied: the history in the store is of "
                    f"another log, and this one, which begins on this disk at {local_start_offset}, lost the "
                    "leader epochs that show what both share; elect another leader"
                )
            case Gap(end_offset, local_start_offset):
                raise SparklogError(
                    f"{self.partition.topic_partition} cannot be copied: its history in the store ends at "
                    f"{end_offset}, and its log on this disk begins at {local_start_offset}"
                )

    def _write(self, head: Head, stored: StoredHead) -> bool:
        return write_head(self.ports.zookeeper, self.remote, self.leadership, head, stored)

    def _copy(self, offsets: OffsetRange, stored: StoredHead) -> bool:
        """Upload a segment and enter it in the head; False if another leader replaced this one meanwhile."""
        note_topic(self.ports.zookeeper, self.remote)
        found = self._survey(offsets)
        draft = self._draft(offsets.base_offset, found)
        try:
            copied = self._upload(draft, found.schema_version)
            is_done = self._write(stored.head.with_copied(copied), stored)
        except LogChanged:
            self._take_back(draft)
            raise
        if not is_done:
            self._take_back(draft)
        self.statistics.segments += is_done
        return is_done

    def _survey(self, offsets: OffsetRange) -> Survey:
        """The topic's present layout decides; its other segments may have the other layout."""
        source = SegmentSource.of(self.partition, offsets)
        return survey(source.batches(), offsets.end_offset, is_raw=self.partition.log.config.remote_raw)

    def _draft(self, base_offset: int, found: Survey) -> RemoteSegment:
        """The segment before its objects exist: a size of 1 stands for an object that it will have."""
        return RemoteSegment(
            base_offset=base_offset,
            end_offset=found.end_offset,
            max_timestamp_ms=found.max_timestamp_ms,
            size_bytes=found.size_bytes,
            segment_id=self.ports.new_id(),
            leader_epoch=self.leadership.leader_epoch,
            arrow_bytes=int(found.has_arrow),
            rest_bytes=1,
            state_bytes=0,
            state_crc=0,
        )

    def _upload(self, draft: RemoteSegment, schema_version: int) -> RemoteSegment:
        """Upload the objects of a segment."""
        source = SegmentSource.of(self.partition, OffsetRange(draft.base_offset, draft.end_offset))
        identity = SegmentIdentity(
            draft.segment_id,
            self.remote.topic,
            str(self.remote.topic_id),
            self.remote.partition,
            draft.base_offset,
            draft.leader_epoch,
            schema_version,
        )
        builder = SegmentBuilder(identity, is_raw=not draft.arrow_bytes, columns=self.partition.columns)
        arrow_bytes = 0
        if draft.arrow_bytes:
            name = self.remote.object_name(draft, "arrow")
            arrow_bytes = self.store.put(name, self._paced(builder.arrow_pieces(source.batches())))
        name = self.remote.object_name(draft, "rest")
        rest_bytes = self.store.put(name, self._paced(builder.rest_pieces(source.batches())))
        state = build_state(draft.segment_id, source.state(self.ports.clock.wall_ms()))
        self.store.put(self.remote.object_name(draft, "state"), self._paced([state]))
        return replace(
            draft,
            arrow_bytes=arrow_bytes,
            rest_bytes=rest_bytes,
            state_bytes=len(state),
            state_crc=crc32c(state),
        )

    def _take_back(self, draft: RemoteSegment) -> None:
        """Delete a segment's objects. No head will ever name them, because their id is given once.

        The search for garbage deletes those that the store does not delete now.
        """
        try:
            for name in self.remote.object_names(draft):
                self.store.delete(name)
        except (OSError, SparklogError) as error:
            logger.info(
                "objects of segment %s stay until the search for garbage: %s", draft.segment_id, error
            )

    def _paced(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            yield piece
            self.statistics.bytes += len(piece)
            self.ports.pace(len(piece))

    def _put_page(self, head: Head) -> PageRef:
        grown = head.page_to_grow
        earlier = () if grown is None else read_page(self.store, self.remote, grown)
        return self._put([*earlier, *head.tail])

    def _put(self, segments: Sequence[RemoteSegment]) -> PageRef:
        page, data = build_page(self.remote, self.ports.new_id(), segments)
        self.store.put(self.remote.page_name(page.base_offset, page.page_id), [data])
        return page

    def _cut_back(self, end_offset: int, resumes_at: int, stored: StoredHead) -> bool:
        """End the history at ``end_offset``."""
        # The cut objects stay, because a reader may hold the old head. The search for garbage deletes them.
        page, through = None, stored.head.page_to_cut(end_offset)
        if through is not None:
            kept = segments_before(read_page(self.store, self.remote, through), end_offset)
            page = self._put(kept)
        logger.warning(
            "%s: an unclean election lost offsets %d to %s, and the history in the store is cut there, too",
            self.partition.topic_partition,
            end_offset,
            stored.head.end_offset,
        )
        head = stored.head.cut_to(end_offset, self.leadership.leader_epoch, page)
        if not self._write(head, stored):
            return False
        if head.entries and resumes_at > end_offset:
            self._report_loss(end_offset, resumes_at)
        return True

    def _begin_on_disk(self, local_start_offset: int, stored: StoredHead) -> bool:
        """Raise the log start to the disk's."""
        # The head is written first: that fails if another broker leads, and then this log keeps its start.
        if not self._write(stored.head.from_offset(local_start_offset), stored):
            return False

        def raise_start(log: Log, _: int) -> bool:
            is_led = self.partition.is_leader and self.partition.leader_epoch == self.leadership.leader_epoch
            return is_led and log.raise_log_start(local_start_offset)

        start_offset = self.partition.log_start_offset
        if not self.partition.trim(raise_start):
            return False
        self._report_loss(start_offset, local_start_offset)
        return True

    def _report_hole(self, head: Head, offset: int) -> None:
        """Report the offsets between the cut of another leader and this one's disk, which nobody reported."""
        end = head.end_offset
        if (
            end is not None
            and end < offset
            and head.cut_epoch not in (NO_EPOCH, self.leadership.leader_epoch)
        ):
            self._report_loss(end, offset)

    def _report_loss(self, first_offset: int, end_offset: int) -> None:
        logger.warning(
            "%s: unclean elections lost offsets %d to %d, which no disk and no history has any more; readers "
            "go on at %d",
            self.partition.topic_partition,
            first_offset,
            end_offset,
            end_offset,
        )

    def _forget_below(self, start_offset: int, stored: StoredHead) -> bool:
        """Raise the start of the history, and delete the objects below it."""
        head = stored.head.from_offset(start_offset)
        try:
            named = set(names_of(self.store, self.remote, head))
            gone = set(names_of(self.store, self.remote, stored.head)).difference(named)
        except (ManifestError, RemoteStoreError) as error:
            if not is_of_one_object(error):
                raise
            gone = set()  # a page cannot be read, so the search for garbage finds its segments later
        if not self._write(head, stored):
            return False
        for name in sorted(gone):
            self.store.delete(name)
        return True
