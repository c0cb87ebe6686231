"""Runs a command and counts every system call of it that changes files below a folder, by the kernel's word.

    python traced.py FOLDER COUNTS.json COMMAND ...

It is the judge of the shim, which counts calls of C functions: the tracer of the crash points of storage
stops the process at each system call, and refuses to go on at one that changes files in a way that nobody
foresaw.
"""

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # where the package of crash points is found

from crash_points.calls import change_of
from crash_points.tracer import SystemCall, run

KINDS = {
    "write": "write",
    "create": "create",
    "rename": "rename",
    "unlink": "remove",
    "truncate": "truncate",
    "mkdir": "make directory",
    "rmdir": "remove directory",
    "fsync": "sync",
}
"""The names of the tracer's kinds of changes, as the shim has them."""


def main(folder: str, output: str, command: list[str]) -> int:
    counts: Counter[str] = Counter()

    def count(call: SystemCall) -> bool:
        change = change_of(call, folder)
        if change is not None:
            counts[KINDS[change.kind]] += 1
        return False

    signal.signal(signal.SIGTERM, lambda *_: _pass_on())
    run(lambda: os.execvp(command[0], command), count)
    Path(output).write_text(json.dumps(counts))
    return 0


def _pass_on() -> None:
    """The traced process is asked to end, not we."""
    for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        os.kill(int(child), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
