"""With ``log.flush.acks=fsync`` what is committed is on disks, and not only in the memory of machines.

Whether it is, the simulated disk is asked, and not the log: a recovery point is what a log believes. A batch
is safe in a file when nothing that was done since the last sync could take it in a power cut, and when the
names that lead to the file are safe, too.
"""

from typing import Final

from simulation.disks.disk import MountedDisk, SimulatedDisk
from simulation.disks.inode import Inode
from simulation.disks.power import DirectoryMoved, FileMoved, Made, Named
from simulation.invariants.histories import awaits_history
from simulation.invariants.invariant import Invariant
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.model.cluster_facts import PartitionState
from sparklog.records.envelope import split
from sparklog.storage.log import Log
from sparklog.storage.segments.segment import LOG
from sparklog.storage.segments.swap import SWAP_SUFFIX

EVERYTHING: Final = 1 << 62


class AcknowledgedIsSynced(Invariant):
    """What a leader commits, and answers to acks=all, is on its own disk and on those of all replicas that
    ZooKeeper holds in sync, so the power of all of them may go at once. Whoever joins has it there as well.

    A leader counts itself up to what it has flushed, and a follower flushes before the fetch that claims
    an offset. Replicas that a power cut struck are excused until they are counted again.
    """

    def on_commit(self, truth: PartitionTruth, leader: ReplicaView, added: list[Entry]) -> None:
        when = f"when broker {leader.broker_id} committed {added[-1]}"
        self._check(truth, leader, added[0].base_offset, when)
        for member in () if truth.state is None else truth.state.isr:
            if member != leader.broker_id:
                self._check(truth, truth.view(member), added[0].base_offset, when)

    def on_state(self, truth: PartitionTruth, before: PartitionState | None, state: PartitionState) -> None:
        known = () if before is None else (*before.isr, *before.eligible)
        for member in (*state.isr, *state.eligible):
            if member not in known:
                self._check(truth, truth.view(member), 0, "when it was counted")

    def _check(self, truth: PartitionTruth, view: ReplicaView, start: int, when: str) -> None:
        if view.log is None or view.broker_id in truth.tainted or awaits_history(truth, view):
            return
        end = durable_end(view.log, start)
        if end < truth.committed_end:
            raise self.broken(
                truth,
                f"broker {view.broker_id} has on its disk what is below {end} only; committed is what is "
                f"below {truth.committed_end}, {when}",
            )


def durable_end(log: Log, start: int) -> int:
    """Up to which offset a log outlives a power cut, if it does so up to ``start``."""
    assert isinstance(log.disk, MountedDisk)
    disk, directory = log.disk._disk, log.directory
    names = disk.directories.get(directory)
    if names is None or not _is_linked(disk, directory):
        return start
    unsafe = _unsafe_names(disk, directory)
    files = sorted(name for name in names if name.endswith(LOG))
    for name, next_name in zip(files, [*files[1:], ""], strict=True):
        end = _base_offset(next_name) if next_name else EVERYTHING
        if end <= start:
            continue
        if name in unsafe:
            return max(start, _base_offset(name))
        if not names[name].is_safe:
            return max(start, _safe_end(names[name], _base_offset(name)))
    return EVERYTHING


def _safe_end(inode: Inode, base_offset: int) -> int:
    batches = split(inode.safe_bytes)
    return batches[-1][1].next_offset if batches else base_offset


def _is_linked(disk: SimulatedDisk, path: str) -> bool:
    """Whether a power cut leaves the directories that lead there."""
    while parent := path.rpartition("/")[0]:
        for _, change in disk.journal.get(parent, ()):
            if isinstance(change, Made) and change.path == path:
                return False
            if isinstance(change, DirectoryMoved) and change.new == path:
                return False
        path = parent
    return True


def _unsafe_names(disk: SimulatedDisk, directory: str) -> set[str]:
    """Of files that a power cut may take although they are synced, or put another one in their place. A
    cleaned segment is safe under the name that it had before: a start goes on from there."""
    found: set[str] = set()
    for _, change in disk.journal.get(directory, ()):
        if isinstance(change, Named):
            found.add(change.name)
        elif isinstance(change, FileMoved) and not change.old.endswith(SWAP_SUFFIX):
            found.update((change.old, change.new))
    return found


def _base_offset(name: str) -> int:
    return int(name.removesuffix(LOG))
