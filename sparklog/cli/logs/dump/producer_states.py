"""``.snapshot``: a log's producer states."""

from typing import Final

from sparklog.cli.logs.dump.dump_options import Report
from sparklog.cli.logs.dump.rows import ProducerRow
from sparklog.core.producers.producer_state import CorruptSnapshot
from sparklog.storage.inspection.inspect_file import InspectedFile
from sparklog.storage.inspection.inspect_snapshot import read_producers

FILE_BYTES_MAX: Final = 256 * 1024 * 1024
"""Enough for a million producers. The file is read as a whole, because its CRC covers all of it."""


def dump_snapshot(report: Report, file: InspectedFile) -> None:
    if file.size() > FILE_BYTES_MAX:
        report.corrupt(f"{file.size()} bytes are too many for a snapshot: not opened")
        return
    try:
        for producer in read_producers(file.read_fully(file.size(), 0)):
            report.output.row(ProducerRow(producer))
    except CorruptSnapshot as error:
        report.corrupt(str(error))
