"""Records as lines on standard output, and the ends of printing: enough records, silence, a closed pipe."""

import argparse
import select
import sys
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from sparklog.cli.lines import unescape

NULL: Final = b"null"
"""The text for a null key or value, as in Kafka's console consumer."""

POLL_MS: Final = 250


class RecordPrinter:
    """Prints records until one of the command's ends is reached."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._left: int | None = arguments.max_messages
        self._idle_max_ms: int | None = arguments.timeout_ms
        self._separator = unescape(arguments.key_separator) if arguments.print_key else None
        self._output = sys.stdout.buffer
        self._idle_ms = 0

    @property
    def is_done(self) -> bool:
        return (
            self._left == 0
            or (self._idle_max_ms is not None and self._idle_ms >= self._idle_max_ms)
            or is_reader_gone(sys.stdout.fileno())
        )

    @property
    def wait_ms(self) -> int:
        """How long the next poll may wait."""
        return POLL_MS if self._idle_max_ms is None else min(POLL_MS, self._idle_max_ms - self._idle_ms)

    def note_silence(self, waited_ms: int) -> None:
        """A poll of this length returned no record."""
        self._idle_ms += waited_ms

    def print(self, rows: pa.RecordBatch) -> int:
        """Print the rows, or the first of them if fewer are wanted; returns how many were printed.

        Flushes, so that each record is visible at once.
        """
        wanted = rows if self._left is None else rows.slice(0, self._left)
        lines = self._lines(wanted)
        if lines:
            self._output.write(b"\n".join(lines) + b"\n")
            self._output.flush()
        self._idle_ms = 0
        if self._left is not None:
            self._left -= len(lines)
        return len(lines)

    def _lines(self, rows: pa.RecordBatch) -> list[bytes]:
        values: Iterable[bytes | None] = rows.column("value").to_pylist()
        lines = [NULL if value is None else value for value in values]
        if self._separator is None:
            return lines
        keys: Iterable[bytes | None] = rows.column("key").to_pylist()
        return [
            (NULL if key is None else key) + self._separator + line
            for key, line in zip(keys, lines, strict=True)
        ]


def is_reader_gone(descriptor: int) -> bool:
    """Whether this is a pipe without a reader. Without a new record, no write would detect that."""
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hang-ups are always reported
    return any(happened & (select.POLLERR | select.POLLHUP) for _, happened in poll.poll(0))
