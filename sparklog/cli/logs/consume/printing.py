"""Records as lines on standard output, and the ends of printing: enough records, silence, a closed pipe."""

import argparse
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from sparklog.cli.connect import wants_json
from sparklog.cli.logs.record_text import record_json
from sparklog.cli.logs.record_text.lines import unescape
from sparklog.cli.logs.record_text.record import Record
from sparklog.cli.logs.record_text.record_format import RecordFormat
from sparklog.model.ids import TopicPartition

NULL: Final = b"null"
"""The text for a null key or value, as in Kafka's console consumer."""

POLL_MS: Final = 250

Lines = Callable[[TopicPartition, pa.RecordBatch], Iterable[bytes]]
"""The lines of a partition's rows, without their newlines."""


class RecordPrinter:
    """Prints records until one of the command's ends is reached."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._left: int | None = arguments.max_messages
        self._idle_max_ms: int | None = arguments.timeout_ms
        self._lines = lines_of(arguments)
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

    def print(self, topic_partition: TopicPartition, rows: pa.RecordBatch) -> int:
        """Print the rows, or the first of them if fewer are wanted; returns how many were printed.

        Flushes, so that each record is visible at once.
        """
        wanted = rows if self._left is None else rows.slice(0, self._left)
        if wanted.num_rows:
            self._output.write(b"\n".join(self._lines(topic_partition, wanted)) + b"\n")
            self._output.flush()
        self._idle_ms = 0
        if self._left is not None:
            self._left -= wanted.num_rows
        return int(wanted.num_rows)


def lines_of(arguments: argparse.Namespace) -> Lines:
    """How the options of the command show a record."""
    if wants_json(arguments):
        return _as_json
    if arguments.format is not None:
        form: RecordFormat = arguments.format
        return lambda topic_partition, rows: (
            form.line(topic_partition, offset, record) for offset, record in _records(rows)
        )
    if not arguments.print_key:
        return lambda _, rows: _or_null(rows.column("value"))
    separator = unescape(arguments.key_separator)
    return lambda _, rows: [
        key + separator + value
        for key, value in zip(_or_null(rows.column("key")), _or_null(rows.column("value")), strict=True)
    ]


def _or_null(column: pa.Array) -> list[bytes]:
    return [NULL if item is None else item for item in column.to_pylist()]


def _as_json(topic_partition: TopicPartition, rows: pa.RecordBatch) -> Iterator[bytes]:
    for offset, record in _records(rows):
        yield record_json.encode(topic_partition, offset, record)


def _records(rows: pa.RecordBatch) -> Iterator[tuple[int, Record]]:
    """Each row's offset and record."""
    columns: list[list[Any]] = [
        rows.column("offset").to_pylist(),
        rows.column("timestamp").cast(pa.int64()).to_pylist(),
        rows.column("key").to_pylist(),
        rows.column("value").to_pylist(),
        rows.column("headers").to_pylist(),
    ]
    for offset, timestamp_us, key, value, headers in zip(*columns, strict=True):
        pairs = tuple((header["key"], header["value"]) for header in headers or ())
        yield offset, Record(value, key, pairs, timestamp_ms=_milliseconds(timestamp_us))


def _milliseconds(timestamp_us: int | None) -> int | None:
    return None if timestamp_us is None else timestamp_us // 1_000


def is_reader_gone(descriptor: int) -> bool:
    """Whether this is a pipe without a reader. Without a new record, no write would detect that."""
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hang-ups are always reported
    return any(happened & (select.POLLERR | select.POLLHUP) for _, happened in poll.poll(0))
