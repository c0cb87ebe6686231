"""Reads a replica's log from the files of its log directory, for a dump: docs/format/log-directory.md.

The broker should be stopped, or have nothing to do, and its checkpoint of high watermarks be written.
"""

from dataclasses import dataclass
from pathlib import Path

from histories.batches import read_batches
from histories.soundness import DamagedBatchError


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


def read_replica(log_directory: Path, topic: str, partition: int) -> Replica:
    """Every batch is checked, each offset must be above the one before it, and no bytes may be left over."""
    name = f"{topic}-{partition}"
    segments = sorted((log_directory / name).glob("[0-9]*.log"))
    if not segments:
        raise DamagedLogError(f"{log_directory / name}: there is no segment")
    end = int(segments[0].stem)
    start = max(end, _checkpoint(log_directory / "log-start-offset-checkpoint", topic, partition) or 0)
    records: list[tuple[int, int, str]] = []
    batches: list[tuple[int, int, str]] = []
    for path in segments:
        if int(path.stem) < end:
            raise DamagedLogError(f"{path}: begins before {end}, where the segment before it ends")
        end = _read_segment(path, max(end, int(path.stem)), records, batches)
    high_watermark = _checkpoint(log_directory / "replication-offset-checkpoint", topic, partition) or 0
    return Replica(
        start,
        end,
        high_watermark,
        [record for record in records if record[0] >= start],
        [batch for batch in batches if batch[0] >= start],
    )


def _read_segment(
    path: Path, end: int, records: list[tuple[int, int, str]], batches: list[tuple[int, int, str]]
) -> int:
    """Adds what the segment holds; where its last batch ends."""
    data = path.read_bytes()
    read = 0
    try:
        for position, batch in read_batches(data):
            if batch.base_offset < end:
                raise DamagedLogError(f"{path}: a batch at offset {batch.base_offset}, behind {end - 1}")
            records += [(offset, batch.leader_epoch, value) for offset, value in batch.records]
            batches.append((batch.base_offset, batch.last_offset, batch.digest))
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
