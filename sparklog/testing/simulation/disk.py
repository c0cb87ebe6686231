"""Simulated disks behind storage's ``Disk`` port: what a kernel has, and what a power cut leaves of it.

A file keeps two contents: the one that every process sees, and the one that was last synced. The death of a
process changes neither, only a write that was in progress may be there in part. A power cut decides for every
file that was written since its last sync whether the writes are kept, lost, or torn, and for every directory
whose names changed since it was synced whether the changes are there.

An fsync that fails reports it once; what it should have saved stays readable for the process that is there,
and is gone when the next one opens the file (``lose_fading``): cut off, or zeros. A full disk takes part of a
write before it says so. Rot flips one bit of a file at rest.

Trouble is ordered by count, not by time: it strikes at the n-th write (or log fsync, or checkpoint) from now
on, so that a fault list says exactly where.
"""

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from sparklog.model.errors import CorruptBatch, LogDirectoryError
from sparklog.records.envelope import BatchHeader, split
from sparklog.storage.disk import Buffer, File, Lock, SyncFailed
from sparklog.testing.simulation.schedule import Process, ProcessDied

LOG: Final = ".log"
DERIVED: Final = (".index", ".timeindex", ".snapshot")
CHECKPOINT: Final = "checkpoint"
CRC_COVERS_FROM: Final = 21
"""Where in a batch its CRC begins to cover; what stands before it can rot unnoticed, as in Kafka."""

Step = Literal["write", "fsync", "checkpoint"]


class Inode:
    """A file's bytes, whatever its name."""

    __slots__ = ("data", "synced")

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced: bytes | None = b""
        """None while nothing was written since the last sync."""

    def about_to_change(self) -> None:
        if self.synced is None:
            self.synced = bytes(self.data)

    def sync(self) -> None:
        self.synced = None

    def cut_power(self, draw: random.Random) -> None:
        synced = self.synced
        if synced is None:
            return
        fate = draw.choice(("kept", "lost", "torn"))
        if fate == "lost":
            self.data = bytearray(synced)
        elif fate == "torn":
            shared = min(len(synced), len(self.data))
            keep = draw.randint(shared, max(shared, len(self.data)))
            del self.data[keep:]
        self.synced = None


@dataclass(frozen=True, slots=True)
class Doomed:
    """What a failed fsync should have saved: the bytes of ``inode`` from ``start`` to ``end``."""

    inode: Inode
    start: int
    end: int

    @classmethod
    def now(cls, inode: Inode) -> "Doomed":
        saved = inode.data if inode.synced is None else inode.synced
        pairs = zip(saved, inode.data, strict=False)
        start = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
        return cls(inode, min(len(saved), len(inode.data)) if start is None else start, len(inode.data))

    def lose(self, draw: random.Random) -> None:
        """The kernel gave up on these pages: what comes from the disk has zeros there, or ends before."""
        data = self.inode.data
        end = min(self.end, len(data))
        if end == len(data) and draw.random() < 0.5:
            del data[self.start :]
        else:
            data[self.start : end] = bytes(max(0, end - self.start))


Directory = dict[str, Inode]


@dataclass(slots=True)
class Trouble:
    """The n-th step of this kind from now goes wrong; every step is a write."""

    steps_left: int
    strike: Callable[[], None]
    keeps: float = 0.0
    """How much of the write is there nevertheless."""
    at: Step = "write"


@dataclass(slots=True)
class SimulatedDisk:
    """One machine's disk; it outlives its machine's processes. ``mount`` gives a process its view."""

    directories: dict[str, Directory] = field(default_factory=dict)
    synced_names: dict[str, Directory] = field(default_factory=dict)
    lock_holders: dict[str, Process] = field(default_factory=dict)
    trouble: Trouble | None = None
    is_full: int = 0
    doomed: list[Doomed] = field(default_factory=list)
    """What failed fsyncs should have saved; gone once nobody has it in memory any more."""
    fading: list[Doomed] = field(default_factory=list)
    """The part of it that a process found when it started."""

    def mount(self, process: Process) -> "MountedDisk":
        return MountedDisk(self, process)

    def cut_power(self, draw: random.Random) -> None:
        for path in sorted(self.directories):
            names = self.directories[path]
            synced = self.synced_names.get(path)
            if synced is not None and draw.random() < 0.5:
                self.directories[path] = names = dict(synced)
            for name in sorted(names):
                names[name].cut_power(draw)
        self.synced_names.clear()
        self.trouble = None
        self.doomed.clear()
        self.fading.clear()

    def let_doomed_fade(self) -> None:
        """From now on ``lose_fading`` may come."""
        self.fading += self.doomed
        self.doomed = []

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
            position, header = draw.choice(_batches(inode))
            inode.data[position + draw.randrange(CRC_COVERS_FROM, header.size_bytes)] ^= 1 << draw.randrange(
                8
            )
        elif path.endswith(CHECKPOINT):
            inode.data[draw.randrange(len(inode.data))] ^= 0x80  # a digit for a digit could not be noticed
        else:
            inode.data[draw.randrange(len(inode.data))] ^= 1 << draw.randrange(8)
        return path

    def _last_segments(self) -> list[tuple[str, Inode]]:
        found: list[tuple[str, Inode]] = []
        for path in sorted(self.directories):
            names = [name for name in self.directories[path] if name.endswith(LOG)]
            if names and _batches(self.directories[path][max(names)]):
                found.append((f"{path}/{max(names)}", self.directories[path][max(names)]))
        return found

    def _derived(self) -> list[tuple[str, Inode]]:
        return [
            (f"{path}/{name}", inode)
            for path in sorted(self.directories)
            for name, inode in sorted(self.directories[path].items())
            if inode.data and name.endswith((*DERIVED, CHECKPOINT))
        ]

    def about_to_rename(self, path: str) -> None:
        if path not in self.synced_names:
            self.synced_names[path] = dict(self.directories[path])


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
            self.strike()
            self.need_room(path)
            self._disk.about_to_rename(_parent(path))
            directory[name] = Inode()
        return SimulatedFile(self, path, directory[name])

    def read(self, path: str) -> bytes:
        return bytes(self._inode(path).data)

    def write_atomically(self, path: str, data: Buffer, *, sync: bool = True) -> None:
        self.strike(step="checkpoint")
        self.need_room(path)
        directory, name = self._names(path)
        fresh = Inode()
        fresh.data = bytearray(data)
        if sync:
            fresh.sync()
        self._disk.about_to_rename(_parent(path))
        directory[name] = fresh
        if sync:
            self.sync_directory(_parent(path))

    def sync_file(self, path: str) -> None:
        self.strike()
        self._inode(path).sync()

    def sync_directory(self, path: str) -> None:
        self.strike()
        self._disk.synced_names.pop(path, None)

    def size(self, path: str) -> int:
        return len(self._inode(path).data)

    def exists(self, path: str) -> bool:
        return path in self._disk.directories or _name(path) in self._disk.directories.get(_parent(path), {})

    def is_directory(self, path: str) -> bool:
        return path in self._disk.directories

    def list(self, path: str) -> list[str]:
        directories = self._disk.directories
        if path not in directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        below = [_name(other) for other in directories if _parent(other) == path]
        return sorted([*directories[path], *below])

    def make_directory(self, path: str) -> None:
        self.strike()
        self.need_room(path)
        at = 1
        while (at := path.find("/", at)) > 0:
            self._disk.directories.setdefault(path[:at], {})
            at += 1
        self._disk.directories.setdefault(path, {})

    def remove(self, path: str) -> None:
        self.strike()
        directory, name = self._names(path)
        if name not in directory:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._disk.about_to_rename(_parent(path))
        del directory[name]

    def rename(self, old: str, new: str) -> None:
        self.strike()
        directories = self._disk.directories
        if old in directories:
            for path in [path for path in directories if path == old or path.startswith(old + "/")]:
                directories[new + path[len(old) :]] = directories.pop(path)
            return
        inode = self._inode(old)
        self._disk.about_to_rename(_parent(old))
        self._disk.about_to_rename(_parent(new))
        del directories[_parent(old)][_name(old)]
        directories[_parent(new)][_name(new)] = inode

    def remove_directory(self, path: str) -> None:
        self.strike()
        directories = self._disk.directories
        for other in [other for other in directories if other == path or other.startswith(path + "/")]:
            del directories[other]
            self._disk.synced_names.pop(other, None)

    def lock(self, path: str) -> Lock:
        holder = self._disk.lock_holders.get(path)
        if holder is not None and holder.is_alive and holder is not self._process:
            raise LogDirectoryError(f"{_parent(path)} is in use by {holder.name}")
        self._disk.lock_holders[path] = self._process
        return SimulatedLock(self._disk, path, self._process)

    def strike(self, write: Callable[[float], None] | None = None, step: Step = "write") -> None:
        """Before every change: may it happen?"""
        if not self._process.is_alive:
            raise ProcessDied(self._process.name)
        trouble = self._disk.trouble
        if trouble is None or trouble.at not in ("write", step):
            return
        trouble.steps_left -= 1
        if trouble.steps_left > 0:
            return
        self._disk.trouble = None
        if write is not None:
            write(trouble.keeps)
        trouble.strike()

    def need_room(self, path: str, write: Callable[[float], None] = lambda keeps: None) -> None:
        if self._disk.is_full:
            write(0.5)
            raise OSError(errno.ENOSPC, "no space left on device", path)

    def doom(self, inode: Inode) -> None:
        self._disk.doomed.append(Doomed.now(inode))

    def _names(self, path: str) -> tuple[Directory, str]:
        directory = self._disk.directories.get(_parent(path))
        if directory is None:
            raise FileNotFoundError(errno.ENOENT, "no such directory", _parent(path))
        return directory, _name(path)

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

        self._disk.strike(write)
        self._disk.need_room(self._path, write)
        self._write(data)
        self._end += len(data)

    def truncate(self, size: int) -> None:
        self._disk.strike()
        self._inode.about_to_change()
        del self._inode.data[size:]
        self._end = size

    def fsync(self) -> None:
        try:
            self._disk.strike(step="fsync")
        except OSError as error:
            self._disk.doom(self._inode)
            raise SyncFailed(error.errno, error.strerror, self._path) from error
        self._inode.sync()

    def _write(self, data: Buffer) -> None:
        self._inode.about_to_change()
        self._inode.data[self._end : self._end + len(data)] = data


class SimulatedLock:
    """A lock that ends with its process."""

    def __init__(self, disk: SimulatedDisk, path: str, process: Process) -> None:
        self._disk = disk
        self._path = path
        self._process = process

    def release(self) -> None:
        if self._disk.lock_holders.get(self._path) is self._process:
            del self._disk.lock_holders[self._path]


def _batches(inode: Inode) -> list[tuple[int, BatchHeader]]:
    """Those of a log; none of one that is damaged already."""
    try:
        return split(bytes(inode.data))
    except CorruptBatch:
        return []


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
