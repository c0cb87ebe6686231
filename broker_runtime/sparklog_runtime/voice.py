"""Lines for the user on standard error, and the ready line on standard output.

Nobody may be left to read them: a terminal was closed, a pipe broke with the process at its other end. A line
that cannot be written goes to the log instead, so that a stop never fails over its own words.
"""

import contextlib
import logging
import os
import sys
import threading
from typing import Final, TextIO

logger: Final = logging.getLogger(__name__)

READY: Final = "sparklog is ready"
"""How the ready line begins, and no other line of ours."""


def say(text: str) -> None:
    """Write a line for the user to standard error; never fails."""
    _write(sys.stderr, f"sparklog: {text}")


def say_ready(bootstrap_servers: str) -> None:
    """Write the ready line, on which tools wait, to standard output; never fails."""
    _write(sys.stdout, f"{READY}: bootstrap.servers={bootstrap_servers}")


def repeat(line: str) -> bool:
    """Write a line of a driver of ours to where it belongs; False if it is none of ours."""
    if line.startswith(READY):
        _write(sys.stdout, line)
    elif line.startswith("sparklog: "):
        _write(sys.stderr, line)
    else:
        return False
    return True


class Voice:
    """Says lines, from any thread, until it is hushed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_hushed = False

    def __call__(self, text: str) -> None:
        with self._lock:
            if not self._is_hushed:
                say(text)

    def hush(self) -> None:
        """Say nothing from now on."""
        with self._lock:
            self._is_hushed = True


def _write(stream: TextIO, line: str) -> None:
    try:
        print(line, file=stream, flush=True)
    except (OSError, ValueError) as error:
        logger.info("could not write a line (%s): %s", error, line)
        _discard(stream)


def _discard(stream: TextIO) -> None:
    """Lead the stream to /dev/null: else the interpreter's last flush fails, and changes the exit status."""
    with contextlib.suppress(OSError, ValueError):  # a stream that was closed has nothing left to flush
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
