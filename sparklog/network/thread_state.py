"""The kernel's notes about a thread of this process, from Linux's /proc.

/proc/self/task/TID/stat         TID (name) STATE ...
/proc/self/task/TID/schedstat    CPU in ns, wait for a core in ns, turns on a core
"""

import threading
import time
from typing import Final, NamedTuple

from sparklog.core.held_threads import ThreadState

TASKS: Final = "/proc/self/task"


def read_thread_state(native_id: int) -> ThreadState | None:
    """None for a thread that has ended, and where the kernel says nothing of states or turns, as on macOS."""
    task = f"{TASKS}/{native_id}"
    try:
        with open(f"{task}/stat", "rb") as stat, open(f"{task}/schedstat", "rb") as schedstat:
            # A thread's name may have blanks and brackets.
            letter = stat.read().rpartition(b")")[2].split()[0]
            cpu_ns, _, turns = map(int, schedstat.read().split())
    except (OSError, ValueError, IndexError):
        return None
    # A kernel that does not count says zero of all threads.
    return ThreadState(letter.decode("ascii"), cpu_ns, turns) if turns else None


class ThreadTime(NamedTuple):
    """Which thread this is, and the CPU time that it has used since it began."""

    thread: int
    cpu_ns: int


def thread_time() -> ThreadTime:
    """The calling thread's."""
    return ThreadTime(threading.get_ident(), time.thread_time_ns())
