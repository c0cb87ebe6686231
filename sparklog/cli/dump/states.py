"""``.snapshot``: what a log remembers of its producers."""

from typing import Final

from sparklog.cli.dump.options import Report
from sparklog.cli.dump.rows import ProducerRow
from sparklog.core.transaction.producer_state import CorruptSnapshot
from sparklog.storage.inspection.inspect_file import InspectedFile
from sparklog.storage.inspection.inspect_snapshot import read_producers

FILE_BYTES_MAX: Final = 256 * 1024 * 1024
"""A million producers, with room to spare; the CRC is over the whole, so it is read as a whole."""


def dump_snapshot(report: Report, file: InspectedFile) -> None:
    if file.size() > FILE_BYTES_MAX:
        report.corrupt(f"{file.size()} bytes are too many for a snapshot: not opened")
        return
    try:
        for producer in read_producers(file.read_fully(file.size(), 0)):
            report.output.row(ProducerRow(producer))
    except CorruptSnapshot as error:
        report.corrupt(str(error))
