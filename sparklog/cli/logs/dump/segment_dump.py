"""``.log``: every batch of a segment, and on request every record."""

from dataclasses import replace

from sparklog.cli.logs.dump.arrow_columns import arrow_row, column_rows
from sparklog.cli.logs.dump.batch_records import record_rows
from sparklog.cli.logs.dump.dump_options import Report
from sparklog.cli.logs.dump.dumped_rows import columns_beside, is_typed
from sparklog.cli.logs.dump.problems import Kind
from sparklog.cli.logs.dump.rows import BatchRow
from sparklog.model.errors import CorruptBatch
from sparklog.records.arrow.envelope_crc import envelope_crc
from sparklog.records.arrow.header import parse_arrow_header
from sparklog.records.envelope import COMPRESSION_MASK, ENVELOPE_BYTES, Compression
from sparklog.storage.inspection.inspect_file import InspectedFile
from sparklog.storage.inspection.inspect_log import BATCH_BYTES_MAX, Damage, FoundBatch, LogWalk


def dump_log(report: Report, file: InspectedFile) -> None:
    base_offset = report.base_offset
    if base_offset is None:
        report.corrupt("its name is not its base offset in twenty digits")
    else:
        report.output.fact("log_starting_offset", base_offset, f"Log starting offset: {base_offset}")
    walk = LogWalk(file, report.options.max_bytes)
    last_offset: int | None = None
    for found in walk.batches(base_offset or 0):
        if isinstance(found, Damage):
            _show_damage(report, found)
        else:
            last_offset = _show_batch(report, walk, found, last_offset)


def _show_damage(report: Report, damage: Damage) -> None:
    if damage.is_tail:
        report.output.remark(f"Found {damage.length} invalid bytes at the end of {report.name}")
    else:
        report.output.remark(
            f"Found {damage.length} invalid bytes at position {damage.position} of {report.name}"
        )
    report.corrupt_at(damage.position, damage.length, damage.reason)


def _show_batch(report: Report, walk: LogWalk, found: FoundBatch, last_offset: int | None) -> int | None:
    """Shows it; the offset of the last record that was shown."""
    header = found.header
    report.output.row(BatchRow(found))
    if not found.crc_holds:
        _complain(report, found, f"the batch at offset {header.base_offset} does not match its CRC")
    if header.base_offset < found.offset_min:
        _complain(report, found, f"offset {header.base_offset}, expected {found.offset_min} or more")
    if header.attributes & COMPRESSION_MASK > Compression.ZSTD:
        _complain(report, found, f"there is no codec {header.attributes & COMPRESSION_MASK}")
        return last_offset
    if not (header.is_arrow or report.options.deep_iteration):
        return last_offset
    batch = walk.batch_bytes(found)
    if batch is None:
        _complain(report, found, f"its {header.size_bytes} bytes are more than {BATCH_BYTES_MAX}: not opened")
        return last_offset
    if header.is_arrow:
        _show_columns(report, found, batch)
    if report.options.deep_iteration:
        return _show_records(report, found, batch, last_offset)
    return last_offset


def _show_columns(report: Report, found: FoundBatch, batch: memoryview) -> None:
    payload = batch[ENVELOPE_BYTES:]
    try:
        header = parse_arrow_header(payload)
    except CorruptBatch as error:
        _complain(report, found, str(error))
        return
    fixed = arrow_row(payload, header)
    report.output.part("arrow", fixed)
    if not fixed.metadata_crc_holds:
        _complain(report, found, f"the CRC {header.metadata_crc:#010x} of the Arrow metadata does not match")
    if is_typed(batch, found.header) and header.envelope_crc != envelope_crc(batch):
        crc = f"{header.envelope_crc:#010x}"
        _complain(report, found, f"the CRC {crc} of the envelope's fields in the header does not match")
    for column in column_rows(payload, header):
        report.output.part("columns", column)
        if not column.crc_holds:
            _complain(
                report, found, f"the CRC {column.entry.crc:#010x} of column {column.name} does not match"
            )


def _show_records(
    report: Report, found: FoundBatch, batch: memoryview, last_offset: int | None
) -> int | None:
    options, decode = report.options, report.decoder
    rows = record_rows(
        batch,
        found.header,
        shows_metadata=not options.skip_record_metadata,
        shows_content=options.print_data_log,
        topic=columns_beside(report.full_path) if is_typed(batch, found.header) else None,
    )
    try:
        for row in rows:
            if last_offset is not None and row.offset != last_offset + 1:
                report.problem(Kind.NON_CONSECUTIVE, first=last_offset, second=row.offset)
            last_offset = row.offset
            if decode is not None and not found.header.is_control:
                row = replace(row, decoded=decode(row.key, row.value))
            report.output.part("records", row)
    except CorruptBatch as error:
        report.output.remark(f"Found invalid records in the batch at position {found.position}: {error}")
        _complain(report, found, str(error))
    return last_offset


def _complain(report: Report, found: FoundBatch, reason: str) -> None:
    report.corrupt_at(found.position, found.header.size_bytes, reason)
