"""Simulated disks behind storage's ``Disk`` port: what a kernel has, and what a power cut leaves of it.

A file keeps two contents: the one that every process sees, and the one that was last synced. The death of a
process changes neither, only a write that was in progress may be there in part. What a power cut leaves of a
file is drawn (``inode.py``). Of a directory whose names changed since it was synced the first few changes are
kept, all, or none (``power.py``); files and directories know nothing of each other, so what was written last
may be all that is there.

An fsync that fails reports it once; what it should have saved stays readable for the process that is there,
and is gone when the next one opens the file (``lose_fading``): cut off, or zeros. So is whatever was not
synced in a log directory where the device failed a write; the next fsync of such a file fails. A full disk
takes part of a write before it says so. Rot flips one bit of a file at rest.

Trouble is ordered by count, not by time: it strikes at the n-th write (or log fsync, or checkpoint) from now
on, so that a fault list says exactly where.
"""

import copy
import errno
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from simulation.disks.inode import Doomed, Inode, Rot, batches_of, bit_that_rots, byte_that_rots
from simulation.disks.power import (
    Aftermath,
    Change,
    Directory,
    DirectoryMoved,
    Drawn,
    FileMoved,
    Journal,
    Made,
    Named,
    Noted,
    Removed,
    Seen,
    Tree,
    lose_bytes,
    move,
    numbers_in,
    take_back,
    within,
)
from simulation.schedule import US_PER_MS, Process, ProcessDied
from sparklog.model.errors import LogDirectoryError
from sparklog.storage.disk import Buffer, File, Lock, Space, SyncFailed, WriteFailed, write_failure
from sparklog.storage.small_files.meta_properties import FILE as IDENTITY

LOG: Final = ".log"
DERIVED: Final = (".index", ".timeindex", ".snapshot")
CHECKPOINT: Final = "checkpoint"
TEMPORARY: Final = ".tmp"
CRC_COVERS_FROM: Final = 21
SIZE_BYTES: Final = 1 << 30
"""Where in a batch its CRC begins to cover; what stands before it can rot unnoticed, as in Kafka."""

Step = Literal["write", "fsync", "checkpoint"]


@dataclass(slots=True)
class Trouble:
    """The n-th step of this kind from now goes wrong; every step is a write."""

    steps_left: int
    strike: Callable[[], None]
    keeps: float = 0.0
    """How much of the write is there nevertheless."""
    at: Step = "write"
    counts: Callable[[Process], bool] = lambda process: True
    """Whose steps are counted, where two processes have the disk."""


class PowerCut(NamedTuple):
    """What a power cut left: a log with a gap in what was written last, changes of names that are undone."""

    has_gap: bool
    has_other_names: bool


@dataclass(slots=True)
class SimulatedDisk:
    """One machine's disk; it outlives its machine's processes. ``mount`` gives a process its view."""

    directories: dict[str, Directory] = field(default_factory=lambda: {"/": {}})
    journal: Journal = field(default_factory=dict)
    changes: int = 0
    """Of names, ever."""
    lock_holders: dict[str, Process] = field(default_factory=dict)
    trouble: Trouble | None = None
    is_full: int = 0
    looks_full: int = 0
    """Whether it says so when it is asked; a quota need not."""
    is_looked_at: bool = False
    """The witness reads, which nothing befalls: a read may let go of another segment, and write its index."""
    slow_ms: float = 0.0
    """How long an fsync may take; other changes take a part of it."""
    slowness: random.Random = field(default_factory=lambda: random.Random(0))
    rotten: list[Rot] = field(default_factory=list)
    """Under a running broker; made good in the end."""
    rotten_at_rest: list[Rot] = field(default_factory=list)
    """While no broker ran: for a start to find, if it opens that directory."""
    doomed: list[Doomed] = field(default_factory=list)
    """What failed fsyncs and failed writes should have saved; gone once nobody has it in memory any more."""
    failed: set[str] = field(default_factory=set)
    """Log directories where the device failed a write or an fsync, if anything is doomed there or not."""
    untold: list[Inode] = field(default_factory=list)
    """Doomed by a failed write, and nobody has asked to sync them since."""
    fading: list[Doomed] = field(default_factory=list)
    """The part of it that a process found when it started."""

    def mount(self, process: Process) -> "MountedDisk":
        return MountedDisk(self, process)

    def cut_power(self, draw: random.Random) -> PowerCut:
        gaps, has_other_names = self._cut_power(Drawn(draw))
        self.trouble = None
        self.doomed.clear()
        self.failed.clear()
        self.untold.clear()
        self.fading.clear()
        return PowerCut(any(path.endswith(LOG) for path in gaps), has_other_names)

    def _cut_power(self, aftermath: Aftermath) -> tuple[set[str], bool]:
        journal, self.journal = self.journal, {}
        has_other_names = take_back(self.directories, journal, aftermath)
        return lose_bytes(self.directories, aftermath), has_other_names

    def could_be_left(self, found: Tree) -> bool:
        """Whether a power cut now could leave this, if changes of names survive in the order of their time.

        Dice have more to choose from: what became of one directory's names says nothing of another's.
        """
        numbers = sorted({*numbers_in(self.journal), self.changes + 1})
        return any(
            self._copy()._leaves(Seen(found, number, is_halfway))
            for number in numbers
            for is_halfway in (False, True)
        )

    def _leaves(self, seen: Seen) -> bool:
        self._cut_power(seen)
        return not seen.impossible and self.tree() == seen.found

    def _copy(self) -> "SimulatedDisk":
        """What a power cut needs of it."""
        directories, journal = copy.deepcopy((self.directories, self.journal))
        return SimulatedDisk(directories, journal, self.changes)

    def tree(self) -> dict[str, bytes | None]:
        """Everything that is there, by path."""
        directories: dict[str, bytes | None] = {path: None for path in self.directories if path != "/"}
        return directories | {
            f"{path}/{name}": bytes(inode.data)
            for path, names in self.directories.items()
            for name, inode in names.items()
        }

    def let_doomed_fade(self) -> None:
        """From now on ``lose_fading`` may come."""
        self.fading += self.doomed
        self.forgive()

    def forgive(self, but_for: Collection[str] = ()) -> None:
        """Nothing more comes of what failed, but for these log directories."""
        self.doomed = [one for one in self.doomed if self._log_directory(_parent(one.path)) in but_for]
        self.failed.intersection_update(but_for)
        kept = {id(one.inode) for one in self.doomed}
        self.untold = [inode for inode in self.untold if id(inode) in kept]

    def lose_fading(self, draw: random.Random) -> None:
        fading, self.fading = self.fading, []
        for lost in fading:
            lost.lose(draw)

    def rot(self, draw: random.Random, *, logs: bool) -> str | None:
        """Flip a bit where somebody could notice: in a batch of the last segment of some log, or in a file
        that can be made again. Which file it was."""
        found = self._last_segments() if logs else self._derived()
        if not found:
            return None
        path, inode = draw.choice(found)
        if logs:
            position, header = draw.choice(batches_of(inode))
            end = position + header.size_bytes
            before = bytes(inode.data[position:end])
            at = draw.randrange(CRC_COVERS_FROM, header.size_bytes)
            inode.data[position + at] ^= bit_that_rots(draw, at)
            self.rotten_at_rest.append(Rot(path, inode, position, before, bytes(inode.data[position:end])))
        elif path.endswith(CHECKPOINT):
            inode.data[draw.randrange(len(inode.data))] ^= 0x80  # a digit for a digit could not be noticed
        else:
            inode.data[draw.randrange(len(inode.data))] ^= 1 << draw.randrange(8)
        return path

    def rot_batch(self, draw: random.Random, logs: Collection[str], *, is_last: bool) -> Rot | None:
        """Flip a bit that its CRC protects, of some batch of these logs or the last, whoever uses them."""
        found = [
            (f"{path}/{name}", names[name])
            for path, names in sorted(self.directories.items())
            if _name(path) in logs
            for name in sorted(names)
            if name.endswith(LOG) and batches_of(names[name])
        ]
        if not found:
            return None
        path, inode = found[-1] if is_last else draw.choice(found)
        batches = batches_of(inode)
        position, header = batches[-1] if is_last else draw.choice(batches)
        end = position + header.size_bytes
        before = bytes(inode.data[position:end])
        at = byte_that_rots(draw, header)
        inode.data[position + at] ^= bit_that_rots(draw, at)
        rot = Rot(path, inode, position, before, bytes(inode.data[position:end]))
        self.rotten.append(rot)
        return rot

    def scrub(self) -> bool:
        """What rotted and was found by nobody is as it was, as after a pass of a scrubber; whether some of it
        was found, and fetched again."""
        rotten, self.rotten = self.rotten, []
        found = [rot.scrub() for rot in rotten]
        return any(found)

    def rots(self, log: str) -> bool:
        """Whether this log still holds a batch that rotted."""
        return any(
            rot.is_there and any(inode is rot.inode for inode in names.values())
            for rot in (*self.rotten, *self.rotten_at_rest)
            for path, names in self.directories.items()
            if _name(path) == log
        )

    def wipe(self) -> None:
        """Another disk, with nothing on it, is in this one's place."""
        self.directories = {"/": {}}
        self.journal.clear()
        self.lock_holders.clear()
        self.trouble = None
        self.doomed.clear()
        self.failed.clear()
        self.untold.clear()
        self.fading.clear()
        self.rotten.clear()

    def holds_everywhere(self, name: str, *, beside: str) -> bool:
        """Whether each directory that holds ``beside`` holds ``name``, too, and there is one."""
        found = [name in names for names in self.directories.values() if beside in names]
        return bool(found) and all(found)

    def sync_all(self) -> None:
        """As an orderly shutdown of the machine does."""
        self.journal.clear()
        for names in self.directories.values():
            for inode in names.values():
                inode.sync()

    def _last_segments(self) -> list[tuple[str, Inode]]:
        found: list[tuple[str, Inode]] = []
        for path in sorted(self.directories):
            names = [name for name in self.directories[path] if name.endswith(LOG)]
            if names and batches_of(self.directories[path][max(names)]):
                found.append((f"{path}/{max(names)}", self.directories[path][max(names)]))
        return found

    def _derived(self) -> list[tuple[str, Inode]]:
        return [
            (f"{path}/{name}", inode)
            for path in sorted(self.directories)
            for name, inode in sorted(self.directories[path].items())
            if inode.data and name.endswith((*DERIVED, CHECKPOINT))
        ]

    def doom_beside(self, path: str) -> None:
        """The device failed a write at ``path``: the pages that wait beside it were given up with it."""
        home = self._log_directory(path)
        if home is None:
            return
        self.failed.add(home)
        for directory in within(self.directories, home):
            for name, inode in sorted(self.directories[directory].items()):
                if inode.synced is not None:
                    self.doomed.append(Doomed.now(f"{directory}/{name}", inode))
                    self.untold.append(inode)

    def doom_file(self, path: str, inode: Inode) -> None:
        """An fsync failed."""
        home = self._log_directory(path)
        if home is not None:
            self.failed.add(home)
        self.doomed.append(Doomed.now(path, inode))

    def _log_directory(self, path: str) -> str | None:
        while path and IDENTITY not in self.directories.get(path, {}):
            path = _parent(path)
        return path or None

    def about_to_name(self, path: str, name: str) -> None:
        """What ``name`` stands for in the directory at ``path`` is about to change."""
        directory = self.directories[path]
        self.note(path, Named(directory, name, directory.get(name)))

    def note(self, path: str, change: Change) -> None:
        """The names in the directory at ``path`` have changed so."""
        self.changes += 1
        self.journal.setdefault(path, []).append(Noted(self.changes, change))

    def rename_directory(self, old: str, new: str) -> None:
        """An empty one of that name makes way."""
        replaced, pending = self.directories.pop(new, None), self._forget_changes(new)
        move(self.directories, old, new)
        move(self.journal, old, new)
        self.note(_parent(new), DirectoryMoved(old, new, replaced, pending))

    def remove_directory(self, path: str) -> None:
        """With all that is in it."""
        had = {other: self.directories.pop(other) for other in within(self.directories, path)}
        self.note(_parent(path), Removed(path, had, self._forget_changes(path)))

    def _forget_changes(self, path: str) -> Journal:
        """A directory is not there any more; what was not synced of it comes back if it does."""
        return {other: self.journal.pop(other) for other in within(self.journal, path)}


class MountedDisk:
    """``storage.disk.Disk`` for one process. A dead process changes nothing any more."""

    def __init__(self, disk: SimulatedDisk, process: Process) -> None:
        self._disk = disk
        self._process = process

    def open(self, path: str, *, create: bool = False) -> File:
        directory, name = self._names(path)
        if name not in directory:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self.strike(path)
            self.need_room(path)
            self._disk.about_to_name(_parent(path), name)
            directory[name] = Inode()
        return SimulatedFile(self, path, directory[name])

    def read(self, path: str) -> bytes:
        return bytes(self._inode(path).data)

    def write_atomically(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        directory, name = self._names(path)

        def write(keeps: float) -> None:
            self._write_temporary(path, memoryview(data)[: int(len(data) * keeps)])

        self.strike(path, write, step="checkpoint")
        self.need_room(path, write)
        fresh = self._write_temporary(path, data)
        if sync:
            fresh.sync()
        moved = FileMoved(directory, name + TEMPORARY, fresh, directory, name, directory.get(name))
        del directory[name + TEMPORARY]
        directory[name] = fresh
        self._disk.note(_parent(path), moved)
        if sync:
            self.sync_directory(_parent(path))

    def _write_temporary(self, path: str, data: Buffer) -> Inode:
        """One that was left behind is emptied, and used again."""
        directory, name = self._names(path + TEMPORARY)
        if name not in directory:
            self._disk.about_to_name(_parent(path), name)
            directory[name] = Inode()
        directory[name].truncate(0)
        directory[name].write(0, data)
        return directory[name]

    def sync_file(self, path: str) -> None:
        self.strike(path)
        inode = self._inode(path)
        try:
            self.need_saved(inode)
        except OSError as error:
            raise SyncFailed(error.errno, error.strerror, path) from error
        inode.sync()

    def sync_directory(self, path: str) -> None:
        self.strike(path)
        self._need_directory(path)
        self._disk.journal.pop(path, None)

    def size(self, path: str) -> int:
        return len(self._inode(path).data)

    def exists(self, path: str) -> bool:
        return path in self._disk.directories or _name(path) in self._disk.directories.get(_parent(path), {})

    def is_directory(self, path: str) -> bool:
        return path in self._disk.directories

    def list(self, path: str) -> list[str]:
        directories = self._disk.directories
        self._need_directory(path)
        below = [_name(other) for other in directories if _parent(other) == path]
        return sorted([*directories[path], *below])

    def make_directory(self, path: str) -> None:
        self.strike(path)
        self.need_room(path)
        at = 1
        while (at := path.find("/", at)) > 0:
            self._make(path[:at])
            at += 1
        self._make(path)

    def _make(self, path: str) -> None:
        if path in self._disk.directories:
            return
        self._disk.directories[path] = {}
        if _parent(path):  # else it is where the disk is mounted
            self._disk.note(_parent(path), Made(path))

    def remove(self, path: str) -> None:
        self.strike(path)
        directory, name = self._names(path)
        if name not in directory:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._disk.about_to_name(_parent(path), name)
        del directory[name]

    def rename(self, old: str, new: str) -> None:
        self.strike(old)
        directories = self._disk.directories
        if old in directories:
            self._rename_directory(old, new)
            return
        inode, (target, name) = self._inode(old), self._names(new)
        source, before = directories[_parent(old)], _name(old)
        moved = FileMoved(source, before, inode, target, name, target.get(name))
        del source[before]
        target[name] = inode
        self._disk.note(_parent(new), moved)

    def _rename_directory(self, old: str, new: str) -> None:
        self._need_directory(_parent(new))
        if new.startswith(old + "/"):
            raise OSError(errno.EINVAL, "a directory cannot move into itself", new)
        if new in self._disk.directories and self.list(new) and new != old:
            raise OSError(errno.ENOTEMPTY, "directory not empty", new)
        if new != old:
            self._disk.rename_directory(old, new)

    def remove_directory(self, path: str) -> None:
        self.strike(path)
        self._need_directory(path)
        self._disk.remove_directory(path)

    def space(self, path: str) -> Space:
        return Space(SIZE_BYTES, 0 if self._disk.looks_full else SIZE_BYTES)

    def lock(self, path: str) -> Lock:
        holder = self._disk.lock_holders.get(path)
        if holder is not None and holder.is_alive and holder is not self._process:
            raise LogDirectoryError(f"{_parent(path)} is in use by {holder.name}")
        self._disk.lock_holders[path] = self._process
        return SimulatedLock(self._disk, path, self._process)

    def strike(self, path: str, write: Callable[[float], None] | None = None, step: Step = "write") -> None:
        """Before every change: may it happen?"""
        if not self._process.is_alive:
            raise ProcessDied(self._process.name)
        if self._disk.is_looked_at:
            return
        if self._disk.slow_ms:
            self._stand_still(step)
        trouble = self._disk.trouble
        if trouble is None or trouble.at not in ("write", step) or not trouble.counts(self._process):
            return
        trouble.steps_left -= 1
        if trouble.steps_left > 0:
            return
        self._disk.trouble = None
        if write is not None:
            write(trouble.keeps)
        try:
            trouble.strike()
        except OSError as error:
            failure = error if step == "fsync" else write_failure(error, path)
            if isinstance(failure, WriteFailed):
                self._disk.doom_beside(path)
            raise failure from None

    def _stand_still(self, step: Step) -> None:
        """A slow disk: the process waits. What it is about has no end yet, so nobody looks at it."""
        disk = self._disk
        share = 1.0 if step == "fsync" else 0.2
        delay_us = int(disk.slowness.random() * disk.slow_ms * share * US_PER_MS)
        self._process.schedule.block(self._process, delay_us, is_looked_at=False)

    def need_room(self, path: str, write: Callable[[float], None] = lambda keeps: None) -> None:
        if self._disk.is_full:
            write(0.5)
            raise OSError(errno.ENOSPC, "no space left on device", path)

    def need_saved(self, inode: Inode) -> None:
        """The first to sync a file that the device has lost pages of is told."""
        untold = self._disk.untold
        self._disk.untold = [one for one in untold if one is not inode]
        if len(self._disk.untold) < len(untold):
            raise OSError(errno.EIO, "input/output error")

    def doom(self, path: str, inode: Inode) -> None:
        self._disk.doom_file(path, inode)

    def _need_directory(self, path: str) -> Directory:
        directory = self._disk.directories.get(path)
        if directory is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return directory

    def _names(self, path: str) -> tuple[Directory, str]:
        return self._need_directory(_parent(path)), _name(path)

    def _inode(self, path: str) -> Inode:
        directory, name = self._names(path)
        if name not in directory:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return directory[name]


class SimulatedFile:
    """``storage.disk.File``."""

    __slots__ = ("_disk", "_end", "_inode", "_path")

    def __init__(self, disk: MountedDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self._end = len(inode.data)

    def __repr__(self) -> str:
        return f"SimulatedFile({self._path!r})"

    @property
    def path(self) -> str:
        return self._path

    def fileno(self) -> int:
        raise AssertionError("a simulated file has no descriptor")

    def size(self) -> int:
        return self._end

    def pread(self, length: int, position: int) -> bytes:
        return bytes(self._inode.data[position : position + length])

    def append(self, data: Buffer) -> None:
        def write(keeps: float) -> None:
            self._write(memoryview(data)[: int(len(data) * keeps)])

        self._disk.strike(self._path, write)
        self._disk.need_room(self._path, write)
        self._write(data)
        self._end += len(data)

    def truncate(self, size: int) -> None:
        self._disk.strike(self._path)
        self._inode.truncate(size)
        self._end = size

    def fsync(self) -> None:
        try:
            self._disk.strike(self._path, step="fsync")
            self._disk.need_saved(self._inode)
        except OSError as error:
            self._disk.doom(self._path, self._inode)
            raise SyncFailed(error.errno, error.strerror, self._path) from error
        self._inode.sync()

    def _write(self, data: Buffer) -> None:
        self._inode.write(self._end, data)


class SimulatedLock:
    """A lock that ends with its process."""

    def __init__(self, disk: SimulatedDisk, path: str, process: Process) -> None:
        self._disk = disk
        self._path = path
        self._process = process

    def release(self) -> None:
        if self._disk.lock_holders.get(self._path) is self._process:
            del self._disk.lock_holders[self._path]


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
