"""``.arrow`` and ``.rest``: the two objects of a remote segment, and whether every byte of them is right."""

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from sparklog.cli.logs.dump.dump_options import Report
from sparklog.cli.logs.dump.stored_columns import file_schema_of, stored_columns
from sparklog.model.errors import CorruptBatch
from sparklog.records.remote_segment.arrow_object import (
    Read,
    check_arrow_object,
    open_arrow_object,
)
from sparklog.records.remote_segment.block_statistics import BlockStatistics
from sparklog.records.remote_segment.ipc_file import Block
from sparklog.records.remote_segment.rest_object import (
    Entry,
    StoredIn,
    Trailer,
    check_pair,
    check_rest_object,
    open_rest_object,
    read_part,
    rebuild,
)
from sparklog.storage.inspection.inspect_file import InspectedFile


@dataclass(frozen=True, slots=True)
class RecordBatchRow:
    """One record batch of an ``.arrow`` object, as the footer tells of it."""

    block: Block
    statistics: BlockStatistics

    def text(self) -> str:
        of = self.statistics
        return (
            f"firstOffset: {of.first_offset} lastOffset: {of.last_offset} count: {of.row_count} "
            f"leastTimestamp: {of.least_timestamp} greatestTimestamp: {of.greatest_timestamp} "
            f"nullKeys: {of.null_keys} leastKey: {of.least_key} greatestKey: {of.greatest_key} "
            f"position: {self.block.offset} size: {self.block.end - self.block.offset} crc: {of.crc}"
        )

    def data(self) -> dict[str, Any]:
        place = {"position": self.block.offset, "size": self.block.end - self.block.offset}
        return {**self.statistics._asdict(), **place}


@dataclass(frozen=True, slots=True)
class EntryRow:
    """One batch of the segment, as the index tells of it."""

    entry: Entry

    def text(self) -> str:
        entry = self.entry
        body = f" body: {entry.body_position} bodySize: {entry.body_length}" if entry.place else ""
        return (
            f"baseOffset: {entry.base_offset} lastOffset: {entry.last_offset} "
            f"partitionLeaderEpoch: {entry.leader_epoch} maxTimestamp: {entry.max_timestamp_ms} "
            f"place: {StoredIn(entry.place).name.lower()} position: {entry.position} "
            f"size: {entry.length}{body}"
        )

    def data(self) -> dict[str, Any]:
        return {
            **self.entry._asdict(),
            "place": StoredIn(self.entry.place).name.lower(),
            "last_offset": self.entry.last_offset,
        }


def dump_arrow(report: Report, file: InspectedFile) -> None:
    try:
        opened = open_arrow_object(_reader(file), file.size())
    except CorruptBatch as error:
        report.corrupt(str(error))
        return
    for name, value in asdict(opened.identity).items():
        report.output.fact(name, value, f"{name}: {value}")
    schema = file_schema_of(_reader(file), opened) if opened.columns else None
    for nth, (block, statistics) in enumerate(zip(opened.blocks, opened.statistics, strict=True)):
        report.output.row(RecordBatchRow(block, statistics))
        if schema is not None:
            for column in stored_columns(schema, statistics.row_count, opened.columns[nth]):
                report.output.part("columns", column)
    sizes = {block.offset: block.end - block.offset for block in opened.blocks}
    for position, problem in check_arrow_object(_reader(file), opened):
        report.corrupt_at(position, sizes.get(position, 0), str(problem))


def dump_rest(report: Report, file: InspectedFile) -> None:
    read = _reader(file)
    try:
        trailer, entries = open_rest_object(read, file.size())
        report.output.fact("segment_id", trailer.segment_id, f"segment_id: {trailer.segment_id}")
        layout = "raw" if trailer.is_raw else "arrow"
        report.output.fact("layout", layout, f"layout: {layout}")
        for entry in entries:
            report.output.row(EntryRow(entry))
        _check_batches(report, read, trailer, entries)
    except CorruptBatch as error:
        report.corrupt(str(error))


def _check_batches(report: Report, read: Read, trailer: Trailer, entries: list[Entry]) -> None:
    """Every batch, with its body if the ``.arrow`` is beside; CorruptBatch if that is another segment's."""
    beside = report.beside(".arrow")
    if trailer.is_raw:
        _report_damage(report, read, trailer, entries, partial(read_part, read_rest=read))
    elif not os.path.exists(beside):
        report.output.remark(f"{os.path.basename(beside)} is not beside it: bodies there are not checked")
        _report_damage(report, read, trailer, entries, partial(read_part, read_rest=read))
    else:
        with InspectedFile(beside) as arrow:
            check_pair(trailer, open_arrow_object(_reader(arrow), arrow.size()))
            rebuilt = partial(rebuild, read_rest=read, read_arrow=_reader(arrow))
            _report_damage(report, read, trailer, entries, rebuilt)


def _report_damage(
    report: Report, read: Read, trailer: Trailer, entries: list[Entry], rebuilt: Callable[[Entry], bytes]
) -> None:
    lengths = {entry.position: entry.length for entry in entries}
    for position, problem in check_rest_object(read, trailer, entries, rebuilt):
        report.corrupt_at(position, lengths.get(position, 0), str(problem))


def _reader(file: InspectedFile) -> Read:
    return lambda position, length: file.read_fully(length, position)
