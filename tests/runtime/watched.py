"""Processes that descend from what a test has started: each inherits a variable, wherever it hangs now."""

import contextlib
from pathlib import Path

WATCH = "SPARKLOG_TEST_WATCH"


def watched(folder: Path) -> list[int]:
    """The living processes whose environment names this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{WATCH}={folder}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
