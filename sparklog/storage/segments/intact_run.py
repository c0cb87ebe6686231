"""Checking a run of batches at once, which makes recovery fast while all batches are intact.

The batches of a large piece of a file are located by their lengths; their envelopes are then checked as
columns, and each CRC is compared with its batch. The result ends before the first batch that is not intact;
``scan.check`` examines that batch and reports its fault.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from crc32c import crc32c

from sparklog.core.producers.producer_state import BATCHES_KEPT
from sparklog.records.envelope import (
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    ENVELOPE_BYTES,
    LENGTH_MIN,
    LENGTH_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
)

HEAD: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
assert HEAD.itemsize == ENVELOPE_BYTES
assert tuple(HEAD.names or ()) == BatchHeader._fields

_LENGTH: Final = struct.Struct(">i")
_LENGTH_POSITION: Final = 8
_BYTES: Final = np.arange(ENVELOPE_BYTES)


@dataclass(frozen=True, slots=True)
class IntactRun:
    """Consecutive intact batches of a file. ``heads``: their envelopes, as columns."""

    positions: Sequence[int]
    sizes: Sequence[int]
    heads: "np.ndarray[Any, np.dtype[np.void]]"

    @property
    def end_position(self) -> int:
        return self.positions[-1] + self.sizes[-1]

    @property
    def next_offset(self) -> int:
        return int(self.heads["base_offset"][-1]) + int(self.heads["last_offset_delta"][-1]) + 1

    @property
    def greatest_epoch(self) -> int:
        """The greatest leader epoch; -1 if no batch has one."""
        return int(self.heads["leader_epoch"].max())

    def last_offsets(self) -> list[int]:
        last: list[int] = (self.heads["base_offset"] + self.heads["last_offset_delta"]).tolist()
        return last

    def epoch_starts(self) -> list[tuple[int, int]]:
        """Leader epoch and base offset of each batch whose epoch differs from the previous batch's."""
        epochs = self.heads["leader_epoch"]
        starts = np.concatenate(([0], np.flatnonzero(epochs[1:] != epochs[:-1]) + 1))
        return list(zip(epochs[starts].tolist(), self.heads["base_offset"][starts].tolist(), strict=True))

    def producers_batches(self) -> list[tuple[int, BatchHeader]]:
        """Positions and envelopes of the batches to apply to producer states: the last few of each producer,
        or all batches with a producer if the run has transactions.
        """
        indices = np.flatnonzero(self.heads["producer_id"] >= 0)
        if not len(indices):
            return []
        chosen = indices.tolist()
        if not np.any(self.heads["attributes"] & (TRANSACTIONAL_BIT | CONTROL_BIT)):
            chosen = _last_of_each(chosen, self.heads["producer_id"][indices].tolist())
        return [(self.positions[index], BatchHeader._make(self.heads[index].item())) for index in chosen]


def intact_run(buffer: bytes, position: int, offset: int, epoch: int = -1) -> IntactRun | None:
    """The intact batches at the beginning of ``buffer``, which is at ``position`` of its file.

    None if the first batch is not intact. ``offset`` and ``epoch``: the least offset and leader epoch that
    the first batch may have.
    """
    places, sizes = _places(buffer)
    if not places:
        return None
    starts = np.array(places)
    raw = np.frombuffer(buffer, dtype=np.uint8)[starts[:, None] + _BYTES]
    heads: np.ndarray[Any, np.dtype[np.void]] = raw.reshape(-1).view(HEAD)
    fine = _are_plausible(heads, offset, epoch)
    view = memoryview(buffer)
    crcs = [
        crc32c(view[place + ATTRIBUTES_POSITION : place + size])
        for place, size in zip(places, sizes, strict=True)
    ]
    fine &= heads["crc"] == np.array(crcs, dtype=np.uint32)
    count = len(fine) if fine.all() else int(np.argmin(fine))
    if not count:
        return None
    return IntactRun((starts[:count] + position).tolist(), sizes[:count], heads[:count])


def _places(buffer: bytes) -> tuple[list[int], list[int]]:
    """Positions and sizes of the complete batches, by their length fields alone."""
    places: list[int] = []
    sizes: list[int] = []
    place, end = 0, len(buffer)
    length_at = _LENGTH.unpack_from
    while end - place >= ENVELOPE_BYTES:
        (length,) = length_at(buffer, place + _LENGTH_POSITION)
        size = length + LENGTH_OVERHEAD
        if length < LENGTH_MIN or place + size > end:
            break
        places.append(place)
        sizes.append(size)
        place += size
    return places, sizes


def _are_plausible(
    heads: "np.ndarray[Any, np.dtype[np.void]]", offset: int, epoch: int
) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    epochs = heads["leader_epoch"]
    greatest = np.maximum.accumulate(np.concatenate(([epoch], epochs[:-1])))
    base = heads["base_offset"].astype(np.int64)
    ends = base + heads["last_offset_delta"] + 1
    least = np.concatenate(([offset], ends[:-1]))
    fine: np.ndarray[Any, np.dtype[np.bool_]] = (
        (heads["magic"] == MAGIC)
        & (heads["last_offset_delta"] >= 0)
        & (heads["record_count"] >= 0)
        & (base >= least)
        & ((epochs < 0) | (epochs >= greatest))
    )
    return fine


def _last_of_each(indices: list[int], producers: list[int]) -> list[int]:
    """Those of ``indices``, in order, that are among the last ``BATCHES_KEPT`` of their producer."""
    seen: dict[int, int] = {}
    chosen: list[int] = []
    for index, producer in zip(reversed(indices), reversed(producers), strict=True):
        count = seen.get(producer, 0)
        if count < BATCHES_KEPT:
            seen[producer] = count + 1
            chosen.append(index)
    chosen.reverse()
    return chosen
