"""The rows of a *run*, batches that were decoded together, and the batches that compaction makes of them.

Each kind of payload has its own run (``filter_arrow``, ``filter_records``). A batch that loses records keeps
its place in the log; ``filter`` says which fields of the envelope stay, and why.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparklog.records.columns import Int64s
from sparklog.records.envelope import DELETE_HORIZON_BIT, BatchHeader, Bytes, build_envelope
from sparklog.records.reading import Batch

Booleans = npt.NDArray[np.bool_]


class Run(ABC):
    """The rows of one batch, or of several that were decoded together."""

    __slots__ = ("batches", "first_rows", "is_tombstone", "keys", "offsets")

    def __init__(
        self, batches: Sequence[Batch], keys: Any, offsets: Int64s, is_tombstone: Booleans, counts: Int64s
    ) -> None:
        self.batches = batches
        self.first_rows = np.concatenate(([0], np.cumsum(counts)))
        """Batch n has the rows from ``first_rows[n]`` up to ``first_rows[n + 1]``."""
        self.keys = keys
        """A binary array."""
        self.offsets = offsets
        self.is_tombstone = is_tombstone

    @abstractmethod
    def rebuild(self, nth: int, rows: Int64s, delete_horizon_ms: int | None = None) -> bytes:
        """Batch ``nth`` with only these ``rows`` (indexes into the run's); at least one must stay.

        A delete horizon replaces the base timestamp; None leaves base timestamp and horizon as they are.
        """


def rebuilt_envelope(
    header: BatchHeader,
    payload: Bytes | Sequence[Bytes],
    timestamps_ms: Int64s,
    delete_horizon_ms: int | None,
) -> bytes:
    """The envelope around what is left of a batch, whose records have these timestamps."""
    attributes, base_timestamp_ms = header.attributes, header.base_timestamp_ms
    if delete_horizon_ms is not None:
        attributes, base_timestamp_ms = attributes | DELETE_HORIZON_BIT, delete_horizon_ms
    newest_ms = header.max_timestamp_ms if header.is_log_append_time else int(timestamps_ms.max())
    return build_envelope(
        payload,
        attributes=attributes,
        record_count=len(timestamps_ms),
        last_offset_delta=header.last_offset_delta,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=newest_ms,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
