"""The clock and the disk of one machine, set from outside while its processes run (``shim.c``).

Every process of the machine is started with ``environment``: the shared library stands before the C library's
own functions, and maps the control file that ``Controls`` writes into. Faults of the disk touch one device.
"""

import mmap
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("shim.c")
CONTROL_BYTES: Final = 4096

_OFFSET_NS: Final = ("<q", 0)
_DEVICE: Final = ("<Q", 8)
_WRITES: Final = ("<ii", 16)
_SYNCS: Final = ("<ii", 24)
_SYNC_DELAY_NS: Final = ("<q", 32)
_FAILED: Final = ("<ii", 40)


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

    def fail_writes(self, error: int, count: int) -> None:
        """The next ``count`` writes fail with ``error``."""
        self._write(_WRITES, error, count)

    def fail_syncs(self, error: int, count: int) -> None:
        """The next ``count`` calls of fsync and fdatasync fail with ``error``."""
        self._write(_SYNCS, error, count)

    def slow_syncs(self, delay_s: float) -> None:
        """Every fsync takes ``delay_s`` longer."""
        self._write(_SYNC_DELAY_NS, int(delay_s * 1_000_000_000))

    def failed(self) -> tuple[int, int]:
        """How many writes and how many syncs have failed so far."""
        layout, at = _FAILED
        writes, syncs = struct.unpack_from(layout, self._page, at)
        return writes, syncs

    def heal_disk(self) -> None:
        """No call fails or is slow any more."""
        self.fail_writes(0, 0)
        self.fail_syncs(0, 0)
        self.slow_syncs(0)

    def close(self) -> None:
        self._page.close()

    def _write(self, where: tuple[str, int], *values: int) -> None:
        layout, at = where
        struct.pack_into(layout, self._page, at, *values)
