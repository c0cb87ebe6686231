"""Batches of untyped topics for readers that know *records* alone.

Only batches of other kinds are read and transcoded. Runs of batches that can go as they are still go as
slices of the file.
"""

from collections.abc import Sequence

from sparklog.broker.conversion.records_run import records_end
from sparklog.model.errors import CorruptBatch
from sparklog.model.parts import Part, part_length, read_part, slice_part
from sparklog.records.envelope import ENVELOPE_BYTES, parse_header
from sparklog.records.transcode import arrow_to_records


def as_records(parts: Sequence[Part]) -> Sequence[Part]:
    """``parts`` as *records*. They end before a batch that is damaged, so that a reader is given all that
    lies in front of it.

    Raises:
        CorruptBatch: it is the first one.
        OSError: the log cannot be read.
    """
    converted: list[Part] = []
    for part in parts:
        try:
            _add_as_records(part, converted)
        except CorruptBatch:
            if not converted:
                raise
            break
    return converted


def _add_as_records(part: Part, converted: list[Part]) -> None:
    """What lies in front of a damaged batch is added before the damage is reported."""
    run_start = position = 0
    length = part_length(part)
    while (position := records_end(part, position)) < length:
        try:
            header = parse_header(read_part(part, position, min(ENVELOPE_BYTES, length - position)))
            end = position + header.size_bytes
            if end > length:
                raise CorruptBatch(f"a batch at {position} ends {end - length} bytes behind what was read")
            rows = arrow_to_records(read_part(part, position, header.size_bytes))
        except CorruptBatch:
            if run_start < position:
                converted.append(slice_part(part, run_start, position - run_start))
            raise
        if run_start < position:
            converted.append(slice_part(part, run_start, position - run_start))
        converted.append(rows)
        run_start = position = end
    if run_start == 0:
        converted.append(part)
    elif run_start < length:
        converted.append(slice_part(part, run_start, length - run_start))
