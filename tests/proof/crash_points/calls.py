"""What a system call does to the files below one directory, in words that can be replayed.

A call that touches that directory and is not understood here is an error, not a gap: ``NotUnderstood``.
"""

import os
from dataclasses import dataclass
from typing import Literal

from crash_points.tracer import SystemCall

Kind = Literal["create", "write", "truncate", "fsync", "mkdir", "rename", "unlink", "rmdir"]

_DESCRIPTOR_FIRST = (
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "fsync", "fdatasync", "fallocate",
    "sync_file_range", "syncfs", "sendfile",
)  # fmt: skip
_PATHS: dict[str, list[tuple[int | None, int]]] = {
    "open": [(None, 0)], "creat": [(None, 0)], "truncate": [(None, 0)], "mkdir": [(None, 0)],
    "rmdir": [(None, 0)], "unlink": [(None, 0)], "rename": [(None, 0), (None, 1)],
    "link": [(None, 0), (None, 1)], "symlink": [(None, 1)],
    "openat": [(0, 1)], "openat2": [(0, 1)], "mkdirat": [(0, 1)], "unlinkat": [(0, 1)],
    "symlinkat": [(1, 2)], "renameat": [(0, 1), (2, 3)], "renameat2": [(0, 1), (2, 3)],
    "linkat": [(0, 1), (2, 3)],
}  # fmt: skip
"""Of which arguments a path is made: descriptor of its directory, and text."""

_AT_CWD = -100
_AT_REMOVEDIR = 0x200
_DELETED = " (deleted)"


class NotUnderstood(Exception):  # noqa: N818 (says what is the case)
    """A call that changes files in a way that this module cannot replay."""


@dataclass(frozen=True, slots=True)
class Change:
    """One call, with paths below the watched directory ("" is that directory itself)."""

    kind: Kind
    path: str
    position: int = 0
    data: bytes = b""
    new_path: str = ""

    def __str__(self) -> str:
        more = {
            "write": f" {len(self.data)} bytes at {self.position}",
            "truncate": f" to {self.position}",
            "rename": f" to {self.new_path}",
        }
        return f"{self.kind} {self.path or '.'}{more.get(self.kind, '')}"

    @property
    def what(self) -> tuple[str, str, str]:
        """By which two runs of one scenario are compared."""
        return self.kind, self.path, self.new_path


def change_of(call: SystemCall, root: str) -> Change | None:
    """What ``call`` does below ``root``; None if it does nothing there."""
    if call.name in _DESCRIPTOR_FIRST:
        path = call.opened(call.arguments[0])
        if path.endswith(_DELETED) or not _is_below(path, root):
            return None
        return _by_descriptor(call, path[len(root) + 1 :])
    if call.name in _PATHS:
        paths = [_path(call, *where) for where in _PATHS[call.name]]
        if not any(_is_below(path, root) for path in paths):
            return None
        return _by_path(call, root, *paths)
    if call.name == "mmap":
        writes, descriptor = call.arguments[2] & 2, _signed(call.arguments[4])
        if not writes or descriptor < 0 or not _is_below(call.opened(descriptor), root):
            return None
    if call.name in ("splice", "copy_file_range") and not _is_below(call.opened(call.arguments[2]), root):
        return None
    raise NotUnderstood(f"{call.name}{call.arguments}")


def _by_descriptor(call: SystemCall, path: str) -> Change:
    descriptor, address, size, position = call.arguments[:4]
    match call.name:
        case "pwrite64":
            return Change("write", path, position, call.memory(address, size))
        case "write":
            return Change("write", path, call.position(descriptor), call.memory(address, size))
        case "ftruncate":
            return Change("truncate", path, address)
        case "fsync" | "fdatasync":
            return Change("fsync", path)
    raise NotUnderstood(f"{call.name} of {path}")


def _by_path(call: SystemCall, root: str, first: str, second: str = "") -> Change | None:
    path, new_path = first[len(root) + 1 :], second[len(root) + 1 :]
    there = os.path.lexists(first)
    match call.name:
        case "open" | "openat":
            flags = call.arguments[1 if call.name == "open" else 2]
            if not there:
                return Change("create", path) if flags & os.O_CREAT else None
            empties = flags & os.O_TRUNC and os.path.getsize(first)
            return Change("truncate", path) if empties else None
        case "mkdir" | "mkdirat":
            return None if there else Change("mkdir", path)
        case "rename" | "renameat" | "renameat2":
            if not (_is_below(first, root) and _is_below(second, root)):
                raise NotUnderstood(f"a rename from {first} to {second}")
            return Change("rename", path, new_path=new_path) if there else None
        case "rmdir":
            return Change("rmdir", path) if there else None
        case "unlink" | "unlinkat":
            removes_directory = call.name == "unlinkat" and call.arguments[2] & _AT_REMOVEDIR
            return Change("rmdir" if removes_directory else "unlink", path) if there else None
        case "truncate":
            return Change("truncate", path, call.arguments[1])
    raise NotUnderstood(f"{call.name} of {path}")


def _path(call: SystemCall, directory: int | None, text: int) -> str:
    path = call.text(call.arguments[text])
    if path.startswith("/"):
        return os.path.normpath(path)
    descriptor = _AT_CWD if directory is None else _signed(call.arguments[directory])
    base = os.readlink(f"/proc/{call.pid}/cwd") if descriptor == _AT_CWD else call.opened(descriptor)
    return os.path.normpath(f"{base}/{path}")


def _signed(argument: int) -> int:
    low = argument & 0xFFFF_FFFF
    return low - (1 << 32) if low >= 1 << 31 else low


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")
