"""Checkpoints: small text files of numbers, in Kafka's format, replaced atomically.

    0                      version
    2                      number of lines that follow
    orders 0 1500          one line per entry
    orders 1 1498

Entries are ``topic partition offset`` in the offset checkpoints of a log directory, and
``epoch start_offset`` in a log's ``leader-epoch-checkpoint``. There is no checksum: only the count protects
the content. Therefore a file with any error is ignored as a whole, with a warning, and the caller uses the
default that costs time but no records: scan everything, trust no high watermark, rebuild the epochs from the
batches.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from sparklog.core.replication.epoch_history import EpochHistory
from sparklog.model.ids import Offset, TopicPartition
from sparklog.storage.disk import Disk

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANED: Final = "cleaner-offset-checkpoint"
EPOCHS: Final = "leader-epoch-checkpoint"

VERSION: Final = 0

logger: Final = logging.getLogger(__name__)
T = TypeVar("T")


def render(rows: Iterable[Iterable[object]]) -> bytes:
    lines = [" ".join(str(value) for value in row) for row in rows]
    return "\n".join([str(VERSION), str(len(lines)), *lines, ""]).encode("ascii")


def parse(data: bytes) -> list[list[str]]:
    """The rows of a checkpoint. Raises ValueError with the reason if the format is wrong."""
    lines = data.decode("ascii").splitlines()
    if len(lines) < 2:
        raise ValueError(f"{len(lines)} lines; the version and the count alone need two")
    if int(lines[0]) != VERSION:
        raise ValueError(f"version {lines[0]}, known is {VERSION}")
    rows = [line.split(" ") for line in lines[2:]]
    if int(lines[1]) != len(rows):
        raise ValueError(f"{len(rows)} entries, but the count says {lines[1]}")
    return rows


def read_offsets(disk: Disk, path: str) -> dict[TopicPartition, Offset]:
    """The offsets of an offset checkpoint; empty when the file is missing or damaged."""
    return _read(disk, path, _offsets) or {}


def write_offsets(disk: Disk, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    rows = (
        (topic_partition.topic, topic_partition.partition, offset)
        for topic_partition, offset in sorted(offsets.items())
    )
    disk.write_atomically(path, render(rows))


def read_epochs(disk: Disk, path: str) -> EpochHistory | None:
    """A log's epoch history. None when the file is missing or damaged: rebuild it from the batches."""
    return _read(disk, path, _epochs)


def write_epochs(disk: Disk, path: str, epochs: EpochHistory) -> None:
    """Write a log's epoch history, without a sync: after a power cut recovery reads the batches."""
    disk.write_atomically(path, render(epochs.entries), sync=False)


def _read(disk: Disk, path: str, convert: Callable[[list[list[str]]], T]) -> T | None:
    if not disk.exists(path):
        return None
    try:
        return convert(parse(disk.read(path)))
    except ValueError as error:
        logger.warning("ignoring the damaged checkpoint %s (%s)", path, error)
        return None


def _offsets(rows: list[list[str]]) -> dict[TopicPartition, Offset]:
    offsets: dict[TopicPartition, Offset] = {}
    for topic, partition, offset in rows:
        if int(partition) < 0 or int(offset) < 0:
            raise ValueError(f"negative number in {topic} {partition} {offset}")
        offsets[TopicPartition(topic, int(partition))] = Offset(int(offset))
    return offsets


def _epochs(rows: list[list[str]]) -> EpochHistory:
    return EpochHistory.of((int(epoch), int(start)) for epoch, start in rows)
