"""The clock and the disk of one machine, set from outside while its processes run (``shim.c``).

Every process of the machine is started with ``environment``: the shared library stands before the C library's
own functions, and maps the control file that ``Controls`` writes into. Faults of the disk touch one device,
or one folder of it.

A *crash point* is one call that changes a file: the n-th of its kind from now on. The process ends there and
then, before the call has done anything; or it stands still there, for somebody to take the disk's power.
"""

import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

SOURCE: Final = Path(__file__).with_name("shim.c")
CONTROL_BYTES: Final = 4096

_OFFSET_NS: Final = ("<q", 0)
_DEVICE: Final = ("<Q", 8)
_WRITES: Final = ("<ii", 16)
_SYNCS: Final = ("<ii", 24)
_SYNC_DELAY_NS: Final = ("<q", 32)
_FAILED: Final = ("<ii", 40)

CALLS: Final = (
    "write", "create", "rename", "remove", "truncate", "make directory", "remove directory", "sync",
)  # fmt: skip
"""Kinds of calls that change files, in the order of shim.c."""

_COUNTS: Final = (f"<{len(CALLS)}i", 48)
_KINDS: Final = ("<I", 80)
_POINT: Final = ("<iii", 84)
_REACHED: Final = ("<ii", 96)
_REACHED_PATH: Final = ("<256s", 104)
_FOLDER: Final = ("<512s", 360)
_FAILED_PATH: Final = ("<256s", 872)
_ROOM: Final = ("<qi", 1128)


@dataclass(frozen=True, slots=True)
class Reached:
    """Which process came to the crash point, and with what."""

    pid: int
    call: str
    path: str


def probe() -> str | None:
    """Why no process can be given such a clock or disk here; None if it can."""
    if sys.platform != "linux":
        return f"LD_PRELOAD is Linux's, this is {sys.platform}"
    if shutil.which("gcc") is None:
        return "gcc is not installed (scripts/chaos-setup installs it)"
    return None


def compile_shim(folder: Path) -> Path:
    """The shared library, made anew in ``folder``."""
    library = folder / "shim.so"
    command = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return library


class Controls:
    """One machine's control file. What it is set to holds for processes that run, and for later ones."""

    def __init__(self, library: Path, path: Path) -> None:
        self._library = library
        self._path = path
        path.write_bytes(bytes(CONTROL_BYTES))
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), CONTROL_BYTES)

    @property
    def environment(self) -> dict[str, str]:
        """What processes of this machine are started with."""
        return {"LD_PRELOAD": str(self._library), "SPARKLOG_CHAOS_SHIM": str(self._path)}

    def set_wall_clock(self, offset_s: float) -> None:
        """Put the wall clock ``offset_s`` beside the real one; monotonic clocks go on as they are."""
        self._write(_OFFSET_NS, int(offset_s * 1_000_000_000))

    def watch_device(self, path: Path) -> None:
        """Faults of the disk touch files on the file system of ``path``, and no other."""
        self._write(_DEVICE, os.stat(path).st_dev)

    def watch_folder(self, folder: Path) -> None:
        """Of the device that ``folder`` is on, what is below it; nothing else."""
        text = os.fsencode(folder.resolve())
        if len(text) >= struct.calcsize(_FOLDER[0]):
            raise ValueError(f"{folder} is longer than {struct.calcsize(_FOLDER[0]) - 1} bytes: take another")
        self._write(_FOLDER, text)
        self.watch_device(folder)

    def fail_writes(self, error: int, count: int) -> None:
        """The next ``count`` writes fail with ``error``."""
        self._write(_WRITES, error, count)

    def fail_syncs(self, error: int, count: int) -> None:
        """The next ``count`` calls of fsync and fdatasync fail with ``error``."""
        self._write(_SYNCS, error, count)

    def limit_room(self, size: int) -> None:
        """The disk has room for ``size`` more bytes. The write that comes to its end is short, those after it
        fail with ENOSPC, whatever is deleted meanwhile.
        """
        self._write(_ROOM, size, 1)

    def slow_syncs(self, delay_s: float) -> None:
        """Every fsync takes ``delay_s`` longer."""
        self._write(_SYNC_DELAY_NS, int(delay_s * 1_000_000_000))

    def failed(self) -> tuple[int, int]:
        """How many writes and how many syncs have failed so far."""
        writes, syncs = self._read(_FAILED)
        return writes, syncs

    def failed_path(self) -> str:
        """What the write or the sync that failed last was of."""
        return self._path_at(_FAILED_PATH)

    def heal_disk(self) -> None:
        """No call fails or is slow any more, and there is room."""
        self.fail_writes(0, 0)
        self.fail_syncs(0, 0)
        self._write(_ROOM, 0, 0)
        self.slow_syncs(0)

    def counts(self) -> dict[str, int]:
        """How many calls of each kind there have been that changed something, or were about to."""
        return dict(zip(CALLS, self._read(_COUNTS), strict=True))

    def set_crash_point(
        self, calls: Iterable[str], number: int, *, is_stopped: bool = False, tears: bool = False
    ) -> None:
        """At the ``number``-th call from now on that is of one of these kinds the process gets SIGKILL, or
        SIGSTOP if it ``is_stopped`` there. A write that ``tears`` is half done by then.
        """
        if number < 1:
            raise ValueError(f"the first call is number 1, not {number}")
        self._write(_KINDS, 0)
        self._write(_REACHED, 0, 0)
        self._write(_POINT, number, signal.SIGSTOP if is_stopped else signal.SIGKILL, tears)
        self._write(_KINDS, sum(1 << CALLS.index(call) for call in set(calls)))

    def clear_crash_point(self) -> None:
        """No process ends any more; what was reached stays known."""
        self._write(_KINDS, 0)

    def reached(self) -> Reached | None:
        """Who came to the crash point that was set last, if anybody did."""
        pid, kind = self._read(_REACHED)
        if not pid:
            return None
        return Reached(pid, CALLS[kind], self._path_at(_REACHED_PATH))

    def close(self) -> None:
        self._page.close()

    def _path_at(self, where: tuple[str, int]) -> str:
        (path,) = self._read(where)
        return os.fsdecode(path.partition(b"\0")[0])

    def _read(self, where: tuple[str, int]) -> tuple[Any, ...]:
        layout, at = where
        return struct.unpack_from(layout, self._page, at)

    def _write(self, where: tuple[str, int], *values: int | bytes) -> None:
        layout, at = where
        struct.pack_into(layout, self._page, at, *values)


class Controlled(Protocol):
    """Places whose brokers' calls can be counted, and made to fail."""

    def controls(self, broker_id: int) -> Controls: ...
