"""What a power cut may leave of a series of changes: the states of the disk that a recovery can meet.

The rules are the weakest that ``storage.disk`` asks of a file system, and weaker than what ext4 and xfs keep:

- What an fsync of a file, or of a directory, covered is there: of a file its bytes, of a directory its names.
- Unsynced bytes are there, lost, or torn at any sector (512 bytes) or page (4 KiB); a later part can be there
  and an earlier one not, which then reads as zeros; a file may have its new length and zeros for bytes.
- Unsynced names of one directory come in the order in which they were changed, as journals keep it; other
  directories, and bytes, are independent of that. An fsync of a new file does not save its name.
- A write behind an unsynced truncation of the same file is there only if the truncation is.
"""

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crash_points.calls import Change

SECTOR = 512
PAGE = 4_096

Tree = dict[str, bytes | None]
"""Contents by path; None for a directory."""


def read_tree(root: Path) -> Tree:
    tree: Tree = {}
    for folder, directories, files in os.walk(root):
        below = Path(folder).relative_to(root)
        tree |= {str(below / name): None for name in directories}
        tree |= {str(below / name): (Path(folder) / name).read_bytes() for name in files}
    return dict(sorted(tree.items()))


def write_tree(root: Path, tree: Tree) -> None:
    root.mkdir(parents=True)
    for path, data in sorted(tree.items()):
        if data is None:
            (root / path).mkdir(exist_ok=True)
        else:
            (root / path).write_bytes(data)


@dataclass(frozen=True, slots=True)
class NameChange:
    """In ``directory`` the name now stands for ``node``, or for nothing; a rename is both in one."""

    time: int
    directory: int
    removed: str | None = None
    added: str | None = None
    node: int = -1


@dataclass(frozen=True, slots=True)
class ByteChange:
    """``data`` was written at ``position``; None: the file was cut there."""

    time: int
    node: int
    position: int
    data: bytes | None


@dataclass
class Machine:
    """Files and directories by number, 0 is the root; what is durable of them, and what is not yet."""

    names: dict[int, dict[str, int]] = field(default_factory=lambda: {0: {}})
    durable_names: dict[int, dict[str, int]] = field(default_factory=lambda: {0: {}})
    contents: dict[int, bytes] = field(default_factory=dict)
    durable: dict[int, bytes] = field(default_factory=dict)
    pending_names: list[NameChange] = field(default_factory=list)
    pending_bytes: dict[int, list[ByteChange]] = field(default_factory=dict)
    next_node: int = 1
    time: int = 0

    @classmethod
    def of(cls, tree: Tree) -> "Machine":
        """Where everything in ``tree`` is on the medium."""
        machine = cls()
        for path, data in sorted(tree.items()):
            machine.apply(Change("create" if data is not None else "mkdir", path))
            if data:
                machine.apply(Change("write", path, 0, data))
        machine.durable_names = {node: dict(names) for node, names in machine.names.items()}
        machine.durable = dict(machine.contents)
        machine.pending_names.clear()
        machine.pending_bytes.clear()
        return machine

    def find(self, path: str) -> int:
        node = 0
        for name in path.split("/") if path else ():
            node = self.names[node][name]
        return node

    def apply(self, change: Change) -> None:
        """The kernel did it."""
        self.time += 1
        match change.kind:
            case "create" | "mkdir":
                self._create(change.path, is_directory=change.kind == "mkdir")
            case "write" | "truncate":
                node = self.find(change.path)
                data = change.data if change.kind == "write" else None
                change_of_bytes = ByteChange(self.time, node, change.position, data)
                self.contents[node] = changed(self.contents[node], change_of_bytes)
                self.pending_bytes.setdefault(node, []).append(change_of_bytes)
            case "fsync":
                self._sync(self.find(change.path))
            case "rename":
                self._rename(change.path, change.new_path)
            case "unlink" | "rmdir":
                directory, name = self._place(change.path)
                del self.names[directory][name]
                self.pending_names.append(NameChange(self.time, directory, removed=name))

    def _place(self, path: str) -> tuple[int, str]:
        parent, _, name = path.rpartition("/")
        return self.find(parent), name

    def _create(self, path: str, *, is_directory: bool) -> None:
        directory, name = self._place(path)
        node, self.next_node = self.next_node, self.next_node + 1
        self.names[directory][name] = node
        if is_directory:
            self.names[node], self.durable_names[node] = {}, {}
        else:
            self.contents[node] = self.durable[node] = b""
        self.pending_names.append(NameChange(self.time, directory, added=name, node=node))

    def _rename(self, old: str, new: str) -> None:
        (directory, name), (target, new_name) = self._place(old), self._place(new)
        assert directory == target, f"{old} and {new} are in two directories"
        node = self.names[directory].pop(name)
        self.names[directory][new_name] = node
        self.pending_names.append(NameChange(self.time, directory, name, new_name, node))

    def _sync(self, node: int) -> None:
        if node in self.contents:
            self.durable[node] = self.contents[node]
            self.pending_bytes.pop(node, None)
            return
        self.durable_names[node] = dict(self.names[node])
        self.pending_names = [one for one in self.pending_names if one.directory != node]

    def tree(self) -> Tree:
        """As a process sees it."""
        return _tree(self.names, self.contents)

    # ---- after a power cut ---------------------------------------------------------------------------------

    def states_after_power_cut(self, draw: random.Random, extra: int) -> Iterator[Tree]:
        """The states; ``extra`` of them are drawn, beside those that are built by rule. Some are equal."""
        variants = {node: list(self._variants(node)) for node in self.pending_bytes}
        kept = {node: self.contents[node] for node in variants}
        lost = {node: self.durable[node] for node in variants}
        zeros = {node: _zeroed(self.durable[node], self.contents[node]) for node in variants}
        for names in self._names_after_power_cut():
            for contents in (kept, lost, zeros):
                yield self._state(names, contents)
        for others in (kept, lost):
            for node, variant in variants.items():
                for content in variant:
                    yield self._state(self.names, {**others, node: content})
        choices = list(self._names_after_power_cut())
        for _ in range(extra if variants else 0):
            drawn = {node: draw.choice(variant) for node, variant in variants.items()}
            yield self._state(draw.choice(choices), drawn)

    def allows(self, tree: Tree) -> bool:
        """Whether a power cut may leave ``tree``."""
        contents = {node: {content, *self._allowed(node)} for node, content in self.contents.items()}
        for names in self._names_after_power_cut():
            nodes = _tree(names, {node: str(node).encode() for node in self.contents})
            if nodes.keys() == tree.keys() and all(
                tree[path] is None if node is None else tree[path] in contents[int(node)]
                for path, node in nodes.items()
            ):
                return True
        return False

    def _allowed(self, node: int) -> set[bytes]:
        if node not in self.pending_bytes:
            return set()
        return {
            self.durable[node],
            _zeroed(self.durable[node], self.contents[node]),
            *self._variants(node),
        }

    def _state(self, names: dict[int, dict[str, int]], contents: dict[int, bytes]) -> Tree:
        return _tree(names, {**self.contents, **contents})

    def _names_after_power_cut(self) -> Iterator[dict[int, dict[str, int]]]:
        """Every prefix of what was done, and every directory's own prefixes while the others lost all or
        nothing."""
        pending = self.pending_names
        for count in range(len(pending), -1, -1):
            yield self._with_names(pending[:count])
        for directory in {one.directory for one in pending}:
            mine = [one for one in pending if one.directory == directory]
            others = [one for one in pending if one.directory != directory]
            for count in range(len(mine) + 1) if others else ():
                yield self._with_names(mine[:count])
                yield self._with_names(sorted([*mine[:count], *others], key=lambda one: one.time))

    def _with_names(self, kept: Sequence[NameChange]) -> dict[int, dict[str, int]]:
        names = {node: dict(entries) for node, entries in self.durable_names.items()}
        for one in kept:
            if one.removed is not None:
                del names[one.directory][one.removed]
            if one.added is not None:
                names[one.directory][one.added] = one.node
        return names

    def _variants(self, node: int) -> Iterator[bytes]:
        """What may be left of one file's bytes."""
        base, pending = self.durable[node], self.pending_bytes[node]
        full = self.contents[node]
        for count in range(len(pending) + 1):
            yield _after(base, pending[:count])
            yield _zeroed(base, _after(base, pending[:count]))  # ext4 knows an earlier length, and no bytes
        start = next(
            (at for at, pair in enumerate(zip(base, full, strict=False)) if pair[0] != pair[1]), None
        )
        changed_from = min(len(base), len(full)) if start is None else start
        for cut in _borders(changed_from, len(full)):
            yield full[:cut] + base[cut:] if len(base) > cut else full[:cut]
            yield _zeroed(full[:cut], full)
        for at in _borders(changed_from, len(full)):
            yield full[: at - SECTOR] + bytes(SECTOR) + full[at:] if at - SECTOR >= changed_from else full
        for index, one in enumerate(pending):
            if one.data is not None and all(later.data is not None for later in pending[index + 1 :]):
                yield _after(base, [*pending[:index], *pending[index + 1 :]])


def changed(content: bytes, change: ByteChange) -> bytes:
    if change.data is None:
        return content[: change.position] + bytes(max(0, change.position - len(content)))
    gap = bytes(max(0, change.position - len(content)))
    return content[: change.position] + gap + change.data + content[change.position + len(change.data) :]


def _after(content: bytes, changes: Sequence[ByteChange]) -> bytes:
    for one in changes:
        content = changed(content, one)
    return content


def _zeroed(durable: bytes, content: bytes) -> bytes:
    """The file has its new length, and zeros for the bytes that came with it."""
    return durable[: len(content)] + bytes(max(0, len(content) - len(durable)))


def _borders(start: int, end: int) -> list[int]:
    """Sectors' and pages' borders in between: all of them, or the ones at both ends where there are many."""
    sectors = list(range(start // SECTOR * SECTOR + SECTOR, end, SECTOR))
    pages = [at for at in sectors if at % PAGE == 0]
    return sectors if len(sectors) <= 12 else sorted({*sectors[:3], *sectors[-3:], *pages[:6]})


def _tree(names: dict[int, dict[str, int]], contents: dict[int, bytes]) -> Tree:
    tree: Tree = {}

    def walk(node: int, path: str) -> None:
        for name, child in names[node].items():
            below = f"{path}/{name}" if path else name
            if child in names:
                tree[below] = None
                walk(child, below)
            else:
                tree[below] = contents[child]

    walk(0, "")
    return dict(sorted(tree.items()))
