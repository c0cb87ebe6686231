"""A power cut takes back changes of names in a simulated disk's directories that were not synced.

The changes since a directory was synced are undone from the last to the first, as many as an *aftermath*
says: dice (``Drawn``), or the state after a real power cut (``Seen``). Both run the same code, so dice can
draw every state that ``Seen`` finds possible.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple, Protocol, TypeVar

from simulation.disks.inode import Inode

_T = TypeVar("_T")

Directory = dict[str, Inode]
Directories = dict[str, Directory]

Tree = Mapping[str, bytes | None]
"""What is on a disk by path; None for a directory."""


class Aftermath(Protocol):
    """Who decides what a power cut leaves."""

    def changes_kept(self, changes: "Sequence[Noted]") -> int:
        """How many of one directory's changes are there."""
        ...

    def is_untouched(self, removal: "Noted") -> bool:
        """Whether the removal of a directory and what is in it had not begun; else it had not ended."""
        ...

    def is_back(self, path: str) -> bool:
        """Whether this was still there when such a removal had begun."""
        ...

    def bytes_left(self, path: str, inode: Inode) -> bytearray: ...


class Change(Protocol):
    def undo(self, directories: Directories, noted: "Noted", aftermath: Aftermath) -> "Journal":
        """Take it back; what comes back with it may have unsynced changes of its own."""
        ...


class Noted(NamedTuple):
    """A change of names; numbers ascend over the whole disk."""

    number: int
    change: Change


Journal = dict[str, list[Noted]]
"""By directory what happened to its names since it was synced."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name stood for another file before, or for none."""

    directory: Directory
    name: str
    before: Inode | None

    def undo(self, directories: Directories, noted: Noted, aftermath: Aftermath) -> Journal:
        _name(self.directory, self.name, self.before)
        return {}


@dataclass(frozen=True, slots=True)
class FileMoved:
    source: Directory
    old: str
    inode: Inode
    target: Directory
    new: str
    replaced: Inode | None

    def undo(self, directories: Directories, noted: Noted, aftermath: Aftermath) -> Journal:
        _name(self.target, self.new, self.replaced)
        _name(self.source, self.old, self.inode)
        return {}


def _name(directory: Directory, name: str, inode: Inode | None) -> None:
    if inode is None:
        directory.pop(name, None)
    else:
        directory[name] = inode


@dataclass(frozen=True, slots=True)
class Made:
    """A directory."""

    path: str

    def undo(self, directories: Directories, noted: Noted, aftermath: Aftermath) -> Journal:
        for path in within(directories, self.path):
            del directories[path]
        return {}


@dataclass(frozen=True, slots=True)
class DirectoryMoved:
    """``replaced`` is the empty directory that had the name, with its unsynced changes."""

    old: str
    new: str
    replaced: Directory | None
    pending: Journal

    def undo(self, directories: Directories, noted: Noted, aftermath: Aftermath) -> Journal:
        move(directories, self.new, self.old)
        if self.replaced is None:
            return {}
        directories[self.new] = self.replaced
        return self.pending


@dataclass(frozen=True, slots=True)
class Removed:
    """A directory with all that was in it: one name after the other, in no order that one could know."""

    path: str
    had: Directories
    pending: Journal

    def undo(self, directories: Directories, noted: Noted, aftermath: Aftermath) -> Journal:
        if aftermath.is_untouched(noted):
            directories |= self.had
            return self.pending
        for path in sorted(self.had):
            above = path.rpartition("/")[0]
            if path != self.path and not (above in directories and aftermath.is_back(path)):
                continue
            names = directories[path] = self.had[path]
            for name in sorted(names):
                if not aftermath.is_back(f"{path}/{name}"):
                    del names[name]
        return {}


def within(paths: Directories | Journal, path: str) -> list[str]:
    return [other for other in paths if other == path or other.startswith(path + "/")]


def move(by_path: dict[str, _T], old: str, new: str) -> None:
    """Give a directory another name, and all that is in it."""
    for path in [other for other in by_path if other == old or other.startswith(old + "/")]:
        by_path[new + path[len(old) :]] = by_path.pop(path)


def take_back(directories: Directories, journal: Journal, aftermath: Aftermath) -> bool:
    """Undo what the aftermath says, the last change first; whether there was something."""
    undone: list[tuple[int, Noted]] = []

    def choose(more: Journal) -> None:
        for path in sorted(more):
            for noted in more[path][aftermath.changes_kept(more[path]) :]:
                heappush(undone, (-noted.number, noted))

    choose(journal)
    has_other_names = bool(undone)
    while undone:
        _, noted = heappop(undone)
        choose(noted.change.undo(directories, noted, aftermath))
    return has_other_names


def lose_bytes(directories: Directories, aftermath: Aftermath) -> set[str]:
    """What was not synced of files is as the aftermath says; which of them have a gap now."""
    gaps = set()
    for path in sorted(directories):
        names = directories[path]
        for name in sorted(names):
            where = f"{path}/{name}"
            if names[name].lose(aftermath.bytes_left(where, names[name])):
                gaps.add(where)
    return gaps


def numbers_in(journal: Journal) -> set[int]:
    """Of all changes that may be undone, those in directories that may come back among them."""
    found: set[int] = set()
    for changes in journal.values():
        for number, change in changes:
            found.add(number)
            if isinstance(change, Removed | DirectoryMoved):
                found |= numbers_in(change.pending)
    return found


@dataclass(slots=True)
class Drawn:
    """Dice decide, for each directory and each file by itself."""

    draw: random.Random

    def changes_kept(self, changes: Sequence[Noted]) -> int:
        fate = self.draw.choice(("kept", "lost", "some"))
        return {"kept": len(changes), "lost": 0}.get(fate, self.draw.randint(0, len(changes)))

    def is_untouched(self, removal: Noted) -> bool:
        return self.draw.random() < 0.3

    def is_back(self, path: str) -> bool:
        return self.draw.random() < 0.5

    def bytes_left(self, path: str, inode: Inode) -> bytearray:
        return inode.draw_left(self.draw)


@dataclass(slots=True)
class Seen:
    """What was found decides: changes of names below ``number`` are there, as a journal keeps them, and a
    removal of that number, if ``is_halfway``, in part. A file whose bytes cannot be left keeps all of them.
    """

    found: Tree
    number: int
    is_halfway: bool
    impossible: list[str] = field(default_factory=list)

    def changes_kept(self, changes: Sequence[Noted]) -> int:
        return sum(noted.number < self.number for noted in changes)

    def is_untouched(self, removal: Noted) -> bool:
        return not (self.is_halfway and removal.number == self.number)

    def is_back(self, path: str) -> bool:
        return path in self.found

    def bytes_left(self, path: str, inode: Inode) -> bytearray:
        left = self.found.get(path)
        if left is None or not inode.could_be_left(left):
            self.impossible.append(path)
            return inode.data
        return bytearray(left)
