"""What a broker's restart proves about its logs.

Acknowledgements rest on page caches, so a replica may be trusted with leadership only while its log is known
to be intact since it was last counted as in sync. Every registration of a broker writes the persistent node
``/brokers/incarnations/N``; the *version* of that node is the broker's incarnation number. The record in it
carries ``intact_since``: the oldest incarnation whose data this one certainly still has.

    A member counted as in sync at incarnation ``i`` is proven if and only if ``i >= intact_since``.

Proven restarts (``intact_since`` is inherited):
  every directory of the previous incarnation is back under its UUID, but for those that are offline, and each
  is intact: not suspect, without a corrupt log, and
  either with the clean-stop marker of exactly the last broker epoch that had it (a marker of an older one is
  from before later appends; one that a start on this boot has taken still counts, until one registers), or
  not emptied, on the same boot of the same host (the page cache survived), and this boot's start has had it:
  one that was offline then may have lost its page cache before.
Anything else starts afresh: ``intact_since`` is the new incarnation's own number, and the broker is in no ISR
until it has caught up.

But for the logs that are *spared*: one directory that is not intact says nothing of the others. The record
names each log that was found in an intact one at such a start, with the incarnation that it was intact since,
which goes before ``intact_since``. Only what is named is spared: a log that should be in the intact directory
and is not, or is made anew later, is the other one's. So the names are handed down as they are, and never
taken from what is there at a proven start.

The record names the directories that are offline at its start, with the broker epoch that had each last
(``absent``): nothing is written to them since, so that a clean stop of that epoch proves them whenever they
are back, over any boot.

A directory that is offline at a start that proves nothing is *unseen*: nobody writes to it, and no log that
may be in it is made anew, so that when it is back, and intact, its logs are spared since the incarnation that
it was intact since. Not over a boot: what it held back then is gone, and a start that came to no end may have
put that boot's mark into it.

The registration cannot know its own broker epoch, the ZooKeeper transaction id of its multi-op, but the
node's ``mzxid`` is that id until somebody rewrites the node (to mark a directory suspect); a rewrite
therefore records the epoch explicitly.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final

from sparklog.model.ids import BrokerEpoch, TopicId

LogId = tuple[TopicId, int]
"""A log by its topic and the number of its partition: another topic of that name has other logs."""

FIRST_INCARNATION: Final = 0
"""The version of a node that was just created."""

SPARED_MAX: Final = 8_000
"""Logs named in a record, which must fit into a node of ZooKeeper. Those beyond are unproven."""


@dataclass(frozen=True, slots=True)
class DirectoryIdentity:
    """One log directory as its broker finds it at start.

    ``clean_epoch`` is the broker epoch that stopped cleanly, None if none did; ``emptied`` says that the logs
    it had are gone, ``same_boot`` that a start has had it since the machine's, ``corrupt`` that a log in it
    was found damaged where nothing explains it, or that an fsync of it failed. ``logs`` are those in it.
    """

    uuid: str
    clean_epoch: BrokerEpoch | None = None
    emptied: bool = False
    same_boot: bool = True
    corrupt: bool = False
    logs: Set[LogId] = frozenset()


@dataclass(frozen=True, slots=True)
class Incarnation:
    """The record in ``/brokers/incarnations/N``. ``clean`` says how the incarnation before it ended;
    ``spared`` are the logs that are intact since an earlier incarnation than the rest, and which that is;
    ``unseen`` the directories of which that may turn out; ``absent`` who had those that are offline.
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

    def proves(self, counted_at: int, log: LogId | None = None) -> bool:
        """Whether everything is still in this log that was there when the broker was at ``counted_at``."""
        return counted_at >= self.log_intact_since(log)

    def log_intact_since(self, log: LogId | None) -> int:
        return self.intact_since if log is None else self.spared.get(log, self.intact_since)


@dataclass(frozen=True, slots=True)
class StoredIncarnation:
    """A record with what ZooKeeper knows about it: its number and the broker epoch that wrote it."""

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
    of the previous incarnation as the broker could not open may be missing: their replicas are refused, so
    nothing has to be proven of them, and they stay in the record for when they are back. So does the mark of
    any suspect that is not here: its start has yet to come.
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
    return Incarnation(
        directories=tuple(sorted({*present, *remembered})),
        host_id=host_id,
        boot_id=boot_id,
        intact_since=intact_since,
        clean=clean,
        suspect=tuple(sorted(suspect)),
        spared=dict(sorted(spared.items())[:SPARED_MAX]),
        unseen=unseen,
        absent={} if previous is None else _absent(previous, set(remembered) - present),
    )


def mark_suspect(stored: StoredIncarnation, directory_uuid: str) -> Incarnation:
    """The record to write when an fsync of this directory failed: the next restart with it proves nothing of
    it."""
    suspect = tuple(sorted({*stored.record.suspect, directory_uuid}))
    return replace(stored.record, suspect=suspect, broker_epoch=stored.broker_epoch)


def same_machine(record: Incarnation, *, host_id: str, boot_id: str) -> bool:
    """Whether the writer of ``record`` ran on this host since its last boot."""
    return record.host_id == host_id and record.boot_id == boot_id


def shares_directory(record: Incarnation, directories: Sequence[DirectoryIdentity]) -> bool:
    """Whether a registration is by the holder of (one of) the directories that ``record`` names."""
    return any(directory.uuid in record.directories for directory in directories)


def _known(previous: StoredIncarnation, directories: Sequence[DirectoryIdentity]) -> list[DirectoryIdentity]:
    """The directories that the previous incarnation had; others were added since and prove nothing."""
    return [directory for directory in directories if directory.uuid in previous.record.directories]


def _stopped_cleanly(previous: StoredIncarnation, directories: Sequence[DirectoryIdentity]) -> bool:
    known = _known(previous, directories)
    return bool(known) and all(directory.clean_epoch == _had(previous, directory.uuid) for directory in known)


def _had(previous: StoredIncarnation, directory_uuid: str) -> BrokerEpoch:
    """The last broker epoch that had this directory when it registered."""
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
    # A directory that kept its UUID but not its logs was wiped by hand.
    is_same_boot = directory.same_boot and same_machine(previous.record, host_id=host_id, boot_id=boot_id)
    return is_same_boot and not directory.emptied


def _spared(
    previous: StoredIncarnation, directories: Sequence[DirectoryIdentity], host_id: str, boot_id: str
) -> dict[LogId, int]:
    """The logs in those directories that are intact, although another one is not, or was not when it was
    offline.
    """
    record = previous.record
    return {
        log: min(
            record.log_intact_since(log), record.unseen.get(directory.uuid, record.log_intact_since(log))
        )
        for directory in _known(previous, directories)
        if _is_intact(previous, directory, host_id, boot_id)
        for log in directory.logs
    }


def _unseen(
    previous: StoredIncarnation, directories: Sequence[DirectoryIdentity], *, is_proven: bool
) -> dict[str, int]:
    """The directories that are not here, and since when each is intact; a proven start adds none."""
    record, present = previous.record, {directory.uuid for directory in directories}
    missing = [one for one in (record.unseen if is_proven else record.directories) if one not in present]
    return {one: record.unseen.get(one, record.intact_since) for one in missing}
