"""``.index``, ``.timeindex``, ``.txnindex``: the entries, and whether they are right.

Offset and time indexes are compared with the ``.log`` beside them. If that file is missing, or has no batch
at an entry's position, Kafka's tool ends with a stack trace; this dump shows the entry and reports the
problem.
"""

import contextlib
from collections.abc import Iterator
from itertools import pairwise

from sparklog.cli.logs.dump.batch_records import greatest_timestamp_ms
from sparklog.cli.logs.dump.dump_options import Report
from sparklog.cli.logs.dump.problems import Kind
from sparklog.cli.logs.dump.rows import AbortedRow, OffsetRow, TimeRow
from sparklog.model.errors import CorruptBatch
from sparklog.records.envelope import BatchHeader
from sparklog.storage.inspection.inspect_file import InspectedFile, Unreadable
from sparklog.storage.inspection.inspect_index import (
    ABORTED_ENTRY,
    OffsetEntry,
    TimeEntry,
    aborted_transactions,
    offset_entries,
    position_before,
    time_entries,
)
from sparklog.storage.inspection.inspect_log import BATCH_BYTES_MAX, header_at
from sparklog.storage.segments.index import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES
from sparklog.storage.segments.segment import LOG, OFFSET_INDEX
from sparklog.storage.segments.transaction_index import ABORTED_VERSION

Entry = OffsetEntry | TimeEntry


def dump_offset_index(report: Report, file: InspectedFile) -> None:
    base_offset = _base_offset(report)
    if base_offset is None:
        return
    if not file.size():
        report.output.fact("empty", True, f"{report.path} is empty.")
        return
    if report.options.index_sanity_check:
        entries = offset_entries(file, base_offset, skip_zeros=False)
        _check_sanity(report, file, OFFSET_ENTRY_BYTES, entries)
        return
    _check_size(report, file, OFFSET_ENTRY_BYTES)
    with _opened_beside(report, LOG) as log:
        previous: OffsetEntry | None = None
        for entry in offset_entries(file, base_offset):
            if log is not None:
                _check_offset_entry(report, log, entry)
            if previous is not None and not _grows(previous, entry):
                report.corrupt(_backward(previous, entry))
            previous = entry
            if not report.options.verify_index_only:
                report.output.row(OffsetRow(entry))


def _check_offset_entry(report: Report, log: InspectedFile, entry: OffsetEntry) -> None:
    try:
        header = header_at(log, entry.position)
    except CorruptBatch as error:
        report.corrupt(f"offset {entry.offset}, position {entry.position}: no batch is there: {error}")
        return
    if header.size_bytes > report.options.max_message_size:
        report.corrupt(
            f"offset {entry.offset}, position {entry.position}: the batch of {header.size_bytes} bytes is "
            f"larger than --max-message-size {report.options.max_message_size}"
        )
    elif header.last_offset != entry.offset:
        report.problem(Kind.INDEX_MISMATCH, index_offset=entry.offset, log_offset=header.last_offset)


def dump_time_index(report: Report, file: InspectedFile) -> None:
    base_offset = _base_offset(report)
    if base_offset is None:
        return
    if report.options.index_sanity_check:
        entries = time_entries(file, base_offset, skip_zeros=False)
        _check_sanity(report, file, TIME_ENTRY_BYTES, entries)
        return
    _check_size(report, file, TIME_ENTRY_BYTES)
    with _opened_beside(report, LOG) as log, _opened_beside(report, OFFSET_INDEX) as index:
        previous_ms, previous_offset, start = -1, base_offset, 0
        for entry in time_entries(file, base_offset):
            if index is not None:
                start = position_before(index, base_offset, entry.offset)
            elif entry.offset < previous_offset:
                start = 0
            if log is not None:
                start = _check_time_entry(report, log, entry, start, previous_ms)
            previous_ms, previous_offset = entry.timestamp_ms, entry.offset
            if not report.options.verify_index_only:
                report.output.row(TimeRow(entry))


def _check_time_entry(
    report: Report, log: InspectedFile, entry: TimeEntry, start: int, previous_ms: int
) -> int:
    """The position at which the search for a later entry begins if there is no index."""
    try:
        found = _find(log, entry.offset, start)
        if found is None or found[1].last_offset != entry.offset:
            log_offset = -1 if found is None else found[1].last_offset
            report.problem(Kind.OFFSET_NOT_FOUND, index_offset=entry.offset, log_offset=log_offset)
            return start
        timestamp_ms = _greatest_timestamp_ms(log, *found)
    except CorruptBatch as error:
        report.corrupt(f"timestamp {entry.timestamp_ms}, offset {entry.offset}: {error}")
        return start
    if timestamp_ms != entry.timestamp_ms:
        report.problem(
            Kind.TIMESTAMP_MISMATCH, index_timestamp=entry.timestamp_ms, log_timestamp=timestamp_ms
        )
    if previous_ms >= entry.timestamp_ms:
        report.problem(
            Kind.OUT_OF_ORDER_TIMESTAMP,
            index_timestamp=entry.timestamp_ms,
            previous_index_timestamp=previous_ms,
        )
    return found[0]


def _find(log: InspectedFile, offset: int, position: int) -> tuple[int, BatchHeader] | None:
    """The first batch from ``position`` on that ends at ``offset`` or later."""
    end = log.size()
    while position < end:
        header = header_at(log, position)
        if position + header.size_bytes > end:
            return None
        if header.last_offset >= offset:
            return position, header
        position += header.size_bytes
    return None


def _greatest_timestamp_ms(log: InspectedFile, position: int, header: BatchHeader) -> int:
    if header.size_bytes > BATCH_BYTES_MAX:
        raise CorruptBatch(f"the batch at {position} has {header.size_bytes} bytes: not opened")
    batch = log.read_fully(header.size_bytes, position)
    return greatest_timestamp_ms(memoryview(batch), header)


def dump_aborted_transactions(report: Report, file: InspectedFile) -> None:
    base_offset = report.base_offset or 0
    last_offset = base_offset - 1
    for entry in aborted_transactions(file):
        report.output.row(AbortedRow(entry))
        if entry.version > ABORTED_VERSION or entry.version < 0:
            report.corrupt(f"version {entry.version} of an aborted transaction; known is {ABORTED_VERSION}")
        if entry.last_offset < base_offset or entry.last_offset <= last_offset:
            report.corrupt(f"last offset {entry.last_offset} of an aborted transaction after {last_offset}")
        if entry.first_offset > entry.last_offset:
            report.corrupt(f"an aborted transaction from offset {entry.first_offset} to {entry.last_offset}")
        last_offset = entry.last_offset
    _check_size(report, file, ABORTED_ENTRY.size)


def _base_offset(report: Report) -> int | None:
    if report.base_offset is None:
        report.problem(
            Kind.UNREADABLE, reason="its offsets count from the base offset, which its name does not tell"
        )
    return report.base_offset


def _check_size(report: Report, file: InspectedFile, entry_bytes: int) -> None:
    rest = file.size() % entry_bytes
    if rest:
        report.output.remark(f"Found {rest} invalid bytes at the end of {report.name}")
        report.corrupt_at(file.size() - rest, rest, f"less than an entry of {entry_bytes} bytes")


def _check_sanity(report: Report, file: InspectedFile, entry_bytes: int, entries: Iterator[Entry]) -> None:
    """The checks of a broker before it trusts an index: whole entries, and both numbers grow."""
    wrong = None
    if file.size() % entry_bytes:
        wrong = f"{file.size()} bytes are not a multiple of {entry_bytes}"
    else:
        wrong = next((_backward(*pair) for pair in pairwise(entries) if not _grows(*pair)), None)
    if wrong is None:
        report.output.fact("sanity_check", "passed", f"{report.path} passed sanity check.")
    else:
        report.corrupt(f"failed the sanity check: {wrong}")


def _grows(first: Entry, second: Entry) -> bool:
    return first[0] < second[0] and first[1] < second[1]


def _backward(first: Entry, second: Entry) -> str:
    return f"entry {tuple(second)} follows {tuple(first)}; both numbers must grow"


@contextlib.contextmanager
def _opened_beside(report: Report, suffix: str) -> Iterator[InspectedFile | None]:
    """The segment's other file; None, with a report, if it cannot be read."""
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(InspectedFile(report.beside(suffix)))
        except Unreadable as error:
            report.corrupt(f"not compared with {report.beside(suffix)}: {error}")
            yield None
        else:
            yield file
