"""What a broker's restart proves about its logs.

Acknowledged records may be in page caches only. A replica may therefore lead only if its log is known to be
intact since the replica was last counted as in sync. Every registration of a broker writes the persistent
node ``/brokers/incarnations/N``; the *version* of that node is the broker's incarnation number. Its record
has ``intact_since``: the oldest incarnation whose data this one certainly still has.

    A member counted as in sync at incarnation ``i`` is proven if and only if ``i >= intact_since``.

A restart is proven, and inherits ``intact_since``, if every directory of the previous incarnation that is not
offline is present under its UUID and intact. An intact directory is not suspect, has no corrupt log, and
  * either has the clean marker of exactly the last broker epoch that had it (appends invalidate an older
    marker; a marker that a start on this boot removed still counts until a broker registers),
  * or is not emptied, and is on the same boot of the same host (the page cache survived), and a start of this
    boot had it (a directory that was offline then may have lost its page cache before).
After any other restart ``intact_since`` is the new incarnation's own number, and the broker is in no ISR
until it has caught up.

*Spared* logs are the exception, because a damaged directory proves nothing about the others. The record of
such a start names each log in an intact directory with the incarnation since which it is intact; that number
overrides ``intact_since``. A log that is not listed counts as part of the failed directory: it was missing
from the intact one, or was created later. The list is therefore inherited as it is, and never extended from
the logs present at a proven start.

``absent`` names the directories that are offline at the start, each with the last broker epoch that had it.
Nothing is written to an offline directory, so a clean stop of that epoch proves it later, over any boot.

``unseen`` names the directories that are offline at an unproven start. No broker writes to them, and no log
is created that they may hold. When such a directory is back and intact, its logs are spared since the
incarnation since which it was intact. This does not hold over a boot: the page cache is lost, and an
unfinished start may have written the new boot's id into the directory.

*Kept* disks: an unproven log may still have most records, but a log whose disk was emptied or replaced has
none. ``kept_since`` is the oldest incarnation whose directories this one still has; ``kept`` overrides it for
the logs in the directories that are left when another is lost. Elections without a proven replica ask for
that (``sparklog.core.controller.state.leader_choice``): if every counted replica lost its disk, no report of
theirs says how much there was. ``kept`` follows the rules of the spared logs: inherited as it is, never
extended, and a log that is not named counts as lost.

A registration cannot write its own broker epoch, because that is the ZooKeeper transaction id of its
multi-op. The node's ``mzxid`` is that id until a rewrite (which marks a directory suspect); a rewrite
therefore records the epoch explicitly.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final

from sparklog.model.ids import BrokerEpoch, TopicId

LogId = tuple[TopicId, int]
"""A log by topic id and partition number; the id distinguishes topics of one name."""

FIRST_INCARNATION: Final = 0
"""The version of a new node."""

SPARED_MAX: Final = 8_000
"""Logs named in a record, which must fit into a ZooKeeper node. Others are unproven, or count as lost."""


@dataclass(frozen=True, slots=True)
class DirectoryIdentity:
    """One log directory as its broker finds it at start.

    ``clean_epoch``: the broker epoch that stopped cleanly, or None. ``emptied``: its logs are gone.
    ``same_boot``: a start of this boot had it already. ``corrupt``: a log in it is damaged without an
    explanation, or an fsync of it failed. ``logs``: the logs in it.
    """

    uuid: str
    clean_epoch: BrokerEpoch | None = None
    emptied: bool = False
    same_boot: bool = True
    corrupt: bool = False
    logs: Set[LogId] = frozenset()


@dataclass(frozen=True, slots=True)
class Incarnation:
    """The record in ``/brokers/incarnations/N``. ``clean``: the previous incarnation stopped cleanly.
    ``spared``: logs that are intact since an earlier incarnation than the rest, with its number. ``unseen``:
    offline directories whose logs may be spared later. ``absent``: the last broker epoch of offline ones.
    """

    directories: tuple[str, ...]
    host_id: str
    boot_id: str
    intact_since: int
    clean: bool = False
    suspect: tuple[str, ...] = ()
    broker_epoch: BrokerEpoch | None = None
    spared: Mapping[LogId, int] = field(default_factory=dict)
    unseen: Mapping[str, int] = field(default_factory=dict)
    absent: Mapping[str, BrokerEpoch] = field(default_factory=dict)
    kept_since: int = FIRST_INCARNATION
    kept: Mapping[LogId, int] = field(default_factory=dict)

    def proves(self, counted_at: int, log: LogId | None = None) -> bool:
        """Whether this log still has all records that it had at incarnation ``counted_at``."""
        return counted_at >= self.log_intact_since(log)

    def log_intact_since(self, log: LogId | None) -> int:
        return self.intact_since if log is None else self.spared.get(log, self.intact_since)

    def keeps(self, counted_at: int, log: LogId | None = None) -> bool:
        """Whether the disk that had this log at incarnation ``counted_at`` is still there."""
        return counted_at >= self.log_kept_since(log)

    def log_kept_since(self, log: LogId | None) -> int:
        """An intact log is on a kept disk, so ``kept`` names no log that ``spared`` names."""
        kept_since = self.kept_since if log is None else self.kept.get(log, self.kept_since)
        return min(kept_since, self.log_intact_since(log))


@dataclass(frozen=True, slots=True)
class StoredIncarnation:
    """A record with its number and the broker epoch that wrote it, both from ZooKeeper's metadata."""

    record: Incarnation
    number: int
    broker_epoch: BrokerEpoch


def next_incarnation(
    previous: StoredIncarnation | None,
    directories: Sequence[DirectoryIdentity],
    *,
    host_id: str,
    boot_id: str,
    offline_directories: int = 0,
) -> Incarnation:
    """The record to write, at version ``previous.number``, when a broker registers.

    With no previous record the node is created, and the number is ``FIRST_INCARNATION``. As many directories
    of the previous incarnation may be missing as the broker could not open: their replicas are refused and
    need no proof, and they stay in the record. The mark of a missing suspect directory stays, too, because no
    start has had that directory since.
    """
    number = FIRST_INCARNATION if previous is None else previous.number + 1
    clean = previous is not None and _stopped_cleanly(previous, directories)
    proven = previous is not None and _is_proven(previous, directories, host_id, boot_id, offline_directories)
    intact_since, spared, unseen = number, {}, {}
    if previous is not None:
        if offline_directories and same_machine(previous.record, host_id=host_id, boot_id=boot_id):
            unseen = _unseen(previous, directories, is_proven=proven)
        back = [directory for directory in directories if directory.uuid in previous.record.unseen]
        if proven:
            intact_since = previous.record.intact_since
            spared = dict(previous.record.spared) | _spared(previous, back, host_id, boot_id)
        else:
            spared = _spared(previous, directories, host_id, boot_id)
    present = {directory.uuid for directory in directories}
    suspect = set() if previous is None else set(previous.record.suspect) - present
    remembered = previous.record.directories if previous is not None and offline_directories else ()
    spared = dict(sorted(spared.items())[:SPARED_MAX])
    kept_since, kept = number, dict[LogId, int]()
    if previous is not None:
        kept_since, kept = _kept(previous, number, directories, offline_directories)
        kept = dict(sorted(_named(kept, kept_since, spared).items())[: SPARED_MAX - len(spared)])
    return Incarnation(
        directories=tuple(sorted({*present, *remembered})),
        host_id=host_id,
        boot_id=boot_id,
        intact_since=intact_since,
        clean=clean,
        suspect=tuple(sorted(suspect)),
        spared=spared,
        unseen=unseen,
        absent={} if previous is None else _absent(previous, set(remembered) - present),
        kept_since=kept_since,
        kept=kept,
    )


def mark_suspect(stored: StoredIncarnation, directory_uuid: str) -> Incarnation:
    """The record to write when an fsync of this directory failed: the next restart cannot prove it."""
    suspect = tuple(sorted({*stored.record.suspect, directory_uuid}))
    return replace(stored.record, suspect=suspect, broker_epoch=stored.broker_epoch)


def same_machine(record: Incarnation, *, host_id: str, boot_id: str) -> bool:
    """Whether the writer of ``record`` ran on this host since its last boot."""
    return record.host_id == host_id and record.boot_id == boot_id


def shares_directory(record: Incarnation, directories: Sequence[DirectoryIdentity]) -> bool:
    """Whether one of ``directories`` is named in ``record``."""
    return any(directory.uuid in record.directories for directory in directories)


def _known(previous: StoredIncarnation, directories: Sequence[DirectoryIdentity]) -> list[DirectoryIdentity]:
    """The directories of the previous incarnation; directories added since prove nothing."""
    return [directory for directory in directories if directory.uuid in previous.record.directories]


def _stopped_cleanly(previous: StoredIncarnation, directories: Sequence[DirectoryIdentity]) -> bool:
    known = _known(previous, directories)
    return bool(known) and all(directory.clean_epoch == _had(previous, directory.uuid) for directory in known)


def _had(previous: StoredIncarnation, directory_uuid: str) -> BrokerEpoch:
    """The last broker epoch that registered with this directory."""
    return previous.record.absent.get(directory_uuid, previous.broker_epoch)


def _absent(previous: StoredIncarnation, offline: Set[str]) -> dict[str, BrokerEpoch]:
    return {one: _had(previous, one) for one in sorted(offline)}


def _is_proven(
    previous: StoredIncarnation,
    directories: Sequence[DirectoryIdentity],
    host_id: str,
    boot_id: str,
    offline_directories: int,
) -> bool:
    known = _known(previous, directories)
    missing = len(previous.record.directories) - len(known)
    is_suspect = not set(previous.record.suspect).isdisjoint(previous.record.directories)
    if is_suspect or missing > offline_directories or not known:
        return False
    return all(_is_intact(previous, directory, host_id, boot_id) for directory in known)


def _is_intact(previous: StoredIncarnation, directory: DirectoryIdentity, host_id: str, boot_id: str) -> bool:
    if directory.corrupt or directory.uuid in previous.record.suspect:
        return False
    if directory.clean_epoch == _had(previous, directory.uuid):
        return True
    # A directory with its UUID and without its logs was emptied by hand.
    is_same_boot = directory.same_boot and same_machine(previous.record, host_id=host_id, boot_id=boot_id)
    return is_same_boot and not directory.emptied


def _spared(
    previous: StoredIncarnation, directories: Sequence[DirectoryIdentity], host_id: str, boot_id: str
) -> dict[LogId, int]:
    """The logs in those of ``directories`` that are intact, with the incarnation since which each is."""
    record = previous.record
    return {
        log: min(
            record.log_intact_since(log), record.unseen.get(directory.uuid, record.log_intact_since(log))
        )
        for directory in _known(previous, directories)
        if _is_intact(previous, directory, host_id, boot_id)
        for log in directory.logs
    }


def _kept(
    previous: StoredIncarnation,
    number: int,
    directories: Sequence[DirectoryIdentity],
    offline_directories: int,
) -> tuple[int, dict[LogId, int]]:
    """``kept_since`` and ``kept`` of incarnation ``number``.

    If more directories are missing than could not be opened, which of them are offline is unknown, and none
    counts as kept. A directory that was emptied by hand is lost; one that its broker emptied, and then
    stopped cleanly, is not.
    """
    record, known = previous.record, _known(previous, directories)
    left = [one for one in known if not one.emptied or one.clean_epoch == _had(previous, one.uuid)]
    missing = len(record.directories) - len(known)
    if missing <= offline_directories and len(left) == len(known):
        return record.kept_since, {log: record.log_kept_since(log) for log in {*record.kept, *record.spared}}
    return number, {log: record.log_kept_since(log) for directory in left for log in directory.logs}


def _named(kept: Mapping[LogId, int], kept_since: int, spared: Mapping[LogId, int]) -> dict[LogId, int]:
    """The logs of which ``kept_since`` and ``spared`` do not say as much."""
    return {log: since for log, since in kept.items() if since < kept_since and log not in spared}


def _unseen(
    previous: StoredIncarnation, directories: Sequence[DirectoryIdentity], *, is_proven: bool
) -> dict[str, int]:
    """The missing directories, with the incarnation since which each is intact; a proven start adds none."""
    record, present = previous.record, {directory.uuid for directory in directories}
    missing = [one for one in (record.unseen if is_proven else record.directories) if one not in present]
    return {one: record.unseen.get(one, record.intact_since) for one in missing}
