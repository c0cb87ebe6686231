"""Bugs of the remote tier: what is named too early, deleted too early, or taken from whoever has no say."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.broker.following import fetcher
from sparklog.broker.partition.partition import Partition
from sparklog.broker.remote_log.copying import copier, deletion, garbage_search, heads
from sparklog.broker.remote_log.copying.copier import RemoteCopier, _Work
from sparklog.broker.remote_log.copying.heads import Leadership, StoredHead
from sparklog.broker.remote_log.copying.segment_source import SegmentSource, facts_of
from sparklog.core.controller.state.znodes import state_path
from sparklog.core.remote_log.copy_steps import CopySegment, Step, WritePage
from sparklog.core.remote_log.head import Head
from sparklog.core.remote_log.lineage import Lineage
from sparklog.core.remote_log.reach import RemoteLog
from sparklog.core.remote_log.remote_segment import RemotePartition, RemoteSegment
from sparklog.core.replication.epoch_history import EarlierHistory
from sparklog.core.replication.follower import Follower
from sparklog.model.zookeeper import ANY_VERSION, Check, ZooKeeper
from sparklog.remote.store import RemoteStore, RemoteStoreError


class _LateStore:
    """Takes uploads at once, and makes them later."""

    def __init__(self, store: RemoteStore) -> None:
        self.store = store
        self.uploads: list[tuple[str, bytes]] = []

    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        data = b"".join(pieces)
        self.uploads.append((name, data))
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def _named_before_it_is_there(switch: Switch, kind: type[Step]) -> None:
    def carry_out(original: Any) -> Any:
        def mutated(self: _Work, step: Step, stored: StoredHead) -> bool:
            if not isinstance(step, kind):
                return bool(original(self, step, stored))
            late = self.store = _LateStore(self.store)
            is_done: bool = original(self, step, stored)
            for name, data in late.uploads:
                late.store.put(name, [data])
            return is_done

        return mutated

    switch.method(_Work, "carry_out", carry_out)


def _heads_before_data(switch: Switch) -> None:
    """The head is written first, and the objects of the segment after it."""
    _named_before_it_is_there(switch, CopySegment)


def _heads_before_pages(switch: Switch) -> None:
    """The head is written first, and its new page after it."""
    _named_before_it_is_there(switch, WritePage)


class _HopefulStore:
    """Takes every upload for done."""

    def __init__(self, store: RemoteStore) -> None:
        self.store = store

    def put(self, name: str, pieces: Iterable[bytes]) -> int:
        data = b"".join(pieces)
        try:
            return self.store.put(name, [data])
        except RemoteStoreError:
            return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def _failed_uploads_count(switch: Switch) -> None:
    """The length is known, so the object is taken for whole, whatever the store said."""

    def copy(original: Any) -> Any:
        def mutated(self: _Work, *arguments: Any) -> Any:
            self.store = _HopefulStore(self.store)
            return original(self, *arguments)

        return mutated

    switch.method(_Work, "_copy", copy)


def _heads_without_a_version_check(switch: Switch) -> None:
    """The multi-operation checks that there is a partition, and not that its state is what it was."""

    def check(path: str, version: int) -> Check:
        return Check(path, ANY_VERSION)

    switch.instead(heads, "Check", check)


def _fenced_uploads_count(switch: Switch) -> None:
    """Whoever leads when the head is written, the upload of who led when it began is taken."""

    def leads(original: Any) -> Any:
        def mutated(zookeeper: ZooKeeper, partition: RemotePartition, leadership: Leadership) -> int | None:
            version: int | None = original(zookeeper, partition, leadership)
            if version is not None:
                return version
            node = zookeeper.get(state_path(partition.topic, partition.partition))
            return None if node is None else node.stat.version

        return mutated

    switch.method(heads, "leads", leads)


def _listings_are_trusted(switch: Switch) -> None:
    """What is listed was copied: its segment is passed over."""

    def advance(original: Any) -> Any:
        def mutated(self: RemoteCopier, store: RemoteStore, partition: Partition) -> bool:
            topic, number = partition.topic_partition
            remote = RemotePartition(topic, partition.topic_id, number)
            listed = {
                int(name.rpartition("/")[2].split("-")[1])
                for name in store.names(remote.folder)
                if remote.is_ours(name) and not name.endswith(".page")
            }

            def facts(*arguments: Any) -> Any:
                found = facts_of(*arguments)
                return found and replace(
                    found, sealed=tuple(one for one in found.sealed if one.base_offset not in listed)
                )

            vars(copier)["facts_of"] = facts
            try:
                return bool(original(self, store, partition))
            finally:
                vars(copier)["facts_of"] = facts_of

        return mutated

    switch.method(RemoteCopier, "_advance", advance)


def _garbage_without_a_grace(switch: Switch) -> None:
    """What no head leads to is deleted as soon as it is seen."""
    switch.instead(garbage_search, "GRACE_MS", -1)


def _disks_do_not_wait_for_the_head(switch: Switch) -> None:
    """Whatever is sealed leaves the disk, as if all of it had been copied."""

    def local_start(original: Any) -> Any:
        def mutated(head: Head, *arguments: Any, **limits: Any) -> int | None:
            everything = RemoteLog(head.start_offset, (replace(head.tail[-1], end_offset=sys.maxsize),))
            limits["shared_end"] = sys.maxsize
            start: int | None = original(everything if head.tail else head, *arguments, **limits)
            return start

        return mutated

    switch.method(deletion, "local_start_after_deletion", local_start)


def _epochs_begin_with_the_disk(switch: Switch) -> None:
    """A replica that begins behind a history does not take over its leader's epochs of before."""

    def history_before(original: Any) -> Any:
        def mutated(start: Any) -> EarlierHistory | None:
            found: EarlierHistory | None = original(start)
            return found and replace(found, epochs=())

        return mutated

    switch.method(fetcher, "_history_before", history_before)


def _producers_begin_with_the_disk(switch: Switch) -> None:
    """A replica that begins anew does not take over its leader's producers of before."""
    switch.instead(fetcher, "taken_over", lambda data: None)


def _copies_forget_deletions(switch: Switch) -> None:
    """The head that a copy writes begins where the manifest once began."""

    def with_copied(original: Any) -> Any:
        def mutated(self: Head, segment: RemoteSegment) -> Head:
            head: Head = original(self, segment)
            return replace(head, start_offset=0)

        return mutated

    switch.method(Head, "with_copied", with_copied)


def _aborted_rows_are_in_the_file(switch: Switch) -> None:
    """The file for people has the rows of all transactions."""
    switch.instead(SegmentSource, "_is_aborted", lambda self, header: False)


def _histories_know_no_epochs(switch: Switch) -> None:
    """Offsets alone say what of a log its history has."""
    switch.instead(Lineage, "end_shared_with", lambda self, own, log_end_offset: self.end_offset)


def _fronts_are_never_in_doubt(switch: Switch) -> None:
    """What a follower gave up on its disk is taken for stored, also after an election that lost records."""
    switch.instead(Follower, "is_front_in_doubt", property(lambda self: False))


KILLS: Final = Hunt(kinds=("kill broker",), tier=1.0)

TIERING: Final[tuple[Mutant, ...]] = (
    Mutant(
        "heads-before-data",
        "head before data",
        "readers are led to what is not there, and disks give it up",
        20,
        _heads_before_data,
        KILLS,
        is_quick=True,
    ),
    Mutant(
        "heads-before-pages",
        "head before page",
        "readers are led to a page that is not there, and lose all its segments",
        20,
        _heads_before_pages,
        KILLS,
    ),
    Mutant(
        "failed-uploads-count",
        "a length that is trusted",
        "readers are led to what is not there, or not whole",
        20,
        _failed_uploads_count,
        Hunt(kinds=("fail calls of the store",), tier=1.0),
    ),
    Mutant(
        "heads-without-a-version-check",
        "KIP-405's fencing, left out of the write",
        "a leader that was replaced adds to the history",
        120,
        _heads_without_a_version_check,
        Hunt(
            kinds=("expire session", "lose zookeeper answers"),
            operations=("elect preferred", "move"),
            tier=1.0,
        ),
    ),
    Mutant(
        "fenced-uploads-count",
        "KIP-405's fencing, left out before the write",
        "a leader that was replaced adds to the history",
        60,
        _fenced_uploads_count,
        Hunt(
            kinds=("expire session", "pause broker", "slow the store"),
            operations=("elect preferred", "move"),
            tier=1.0,
        ),
    ),
    Mutant(
        "listings-are-trusted",
        "a listing that is trusted",
        "what a failed upload has left is taken for a copy, and nothing behind it is copied",
        200,
        _listings_are_trusted,
        Hunt(kinds=("fail calls of the store", "kill broker"), tier=1.0),
    ),
    Mutant(
        "garbage-without-a-grace",
        "garbage without a grace",
        "readers of a manifest that was replaced a moment ago do not find its pages",
        20,
        _garbage_without_a_grace,
        Hunt(kinds=("fail calls of the store", "kill broker"), tier=1.0),
    ),
    Mutant(
        "disks-do-not-wait-for-the-head",
        "KIP-405: local retention without the copy",
        "records are neither on a disk nor in the store",
        20,
        _disks_do_not_wait_for_the_head,
        Hunt(kinds=("lose the store", "kill broker"), tier=1.0),
    ),
    Mutant(
        "epochs-begin-with-the-disk",
        "KIP-405: epochs below the local start",
        "a replica gives wrong ends of epochs, and followers cut wrongly",
        60,
        _epochs_begin_with_the_disk,
        Hunt(kinds=("wipe the disk", "replace broker"), operations=("move",), tier=1.0),
    ),
    Mutant(
        "producers-begin-with-the-disk",
        "KIP-405: producer snapshots below the local start",
        "a batch that is sent again is written twice",
        60,
        _producers_begin_with_the_disk,
        Hunt(kinds=("wipe the disk", "replace broker"), operations=("move",), tier=1.0),
    ),
    Mutant(
        "copies-forget-deletions",
        "DeleteRecords that the next manifest forgets",
        "deleted records come back",
        20,
        _copies_forget_deletions,
        Hunt(operations=("delete records",), tier=1.0),
    ),
    Mutant(
        "aborted-rows-are-in-the-file",
        "aborted rows in the file",
        "whoever opens the file reads what was aborted",
        20,
        _aborted_rows_are_in_the_file,
        Hunt(kinds=("kill broker",), transactions=1.0, tier=1.0),
    ),
    Mutant(
        "histories-know-no-epochs",
        "KIP-405: the lineage of leader epochs",
        "readers get what an election lost; what was written instead is not copied, and leaves the disks",
        60,
        _histories_know_no_epochs,
        Hunt(
            kinds=("kill broker", "cut link", "wipe the disk"),
            operations=("allow unclean elections", "elect unclean"),
            tier=1.0,
        ),
    ),
    Mutant(
        "fronts-are-never-in-doubt",
        "KIP-405: local starts after an unclean election",
        "a replica is counted as in sync that lacks what is on its leader's disk alone",
        60,
        _fronts_are_never_in_doubt,
        Hunt(
            plot=91,
            topic_configs={"unclean.leader.election.enable": "true", "min.insync.replicas": "1"},
            tier=1.0,
        ),
    ),
)
