"""Reads a replica's log from the files of its log directory, for a dump: docs/format/log-directory.md.

The broker should be stopped, or have nothing to do, and its checkpoint of high watermarks be written.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from histories.batches import decode_batch, read_batches
from histories.soundness import DamagedBatchError
from histories.typed.columns import TopicColumns

SCHEMA: Final = "schema"
"""The file with a typed topic's columns."""


class DamagedLogError(ValueError):
    """A log that cannot be read; the message says which file, and where."""


@dataclass(frozen=True, slots=True)
class Replica:
    """``records`` and ``batches`` are as ``Writer.dump`` takes them."""

    start: int
    end: int
    high_watermark: int
    records: list[tuple[int, int, str]]
    batches: list[tuple[int, int, str]]
    cells: list[tuple[int, int, str]] | None = None
    """Offset, column and text of what the columns of typed rows hold; None of an untyped topic."""


@dataclass(slots=True)
class _Found:
    """What the segments had so far."""

    columns: TopicColumns | None
    records: list[tuple[int, int, str]] = field(default_factory=list)
    batches: list[tuple[int, int, str]] = field(default_factory=list)
    cells: list[tuple[int, int, str]] = field(default_factory=list)


def read_replica(log_directory: Path, topic: str, partition: int) -> Replica:
    """Every batch is checked, each offset must be above the one before it, and no bytes may be left over."""
    name = f"{topic}-{partition}"
    segments = sorted((log_directory / name).glob("[0-9]*.log"))
    if not segments:
        raise DamagedLogError(f"{log_directory / name}: there is no segment")
    end = int(segments[0].stem)
    start = max(end, _checkpoint(log_directory / "log-start-offset-checkpoint", topic, partition) or 0)
    schema = log_directory / name / SCHEMA
    found = _Found(TopicColumns(schema.read_bytes()) if schema.exists() else None)
    for path in segments:
        if int(path.stem) < end:
            raise DamagedLogError(f"{path}: begins before {end}, where the segment before it ends")
        end = _read_segment(path, max(end, int(path.stem)), found)
    high_watermark = _checkpoint(log_directory / "replication-offset-checkpoint", topic, partition) or 0
    return Replica(
        start,
        end,
        high_watermark,
        [record for record in found.records if record[0] >= start],
        [batch for batch in found.batches if batch[0] >= start],
        None if found.columns is None else [cell for cell in found.cells if cell[0] >= start],
    )


def _read_segment(path: Path, end: int, found: _Found) -> int:
    """Adds what the segment holds; where its last batch ends."""
    data = path.read_bytes()
    read = 0
    try:
        for position, batch in read_batches(data, partial(decode_batch, columns=found.columns)):
            if batch.base_offset < end:
                raise DamagedLogError(f"{path}: a batch at offset {batch.base_offset}, behind {end - 1}")
            found.records += [(offset, batch.leader_epoch, value) for offset, value in batch.records]
            found.cells += [
                (at, column, text) for at, row in batch.cells.items() for column, text in row.items()
            ]
            found.batches.append((batch.base_offset, batch.last_offset, batch.digest))
            end = batch.last_offset + 1
            (length,) = (int.from_bytes(data[position + 8 : position + 12], "big"),)
            read = position + 12 + length
    except DamagedBatchError as error:
        raise DamagedLogError(f"{path}: {error}") from error
    if read != len(data):
        raise DamagedLogError(f"{path}: {len(data) - read} bytes at the end are no whole batch")
    return end


def _checkpoint(path: Path, topic: str, partition: int) -> int | None:
    """What a checkpoint says of a partition."""
    if not path.exists():
        return None
    version, count, *lines = path.read_text("ascii").splitlines()
    if version != "0" or int(count) != len(lines):
        raise DamagedLogError(f"{path}: it is not whole")
    for line in lines:
        name, number, offset = line.split()
        if (name, number) == (topic, str(partition)):
            return int(offset)
    return None
