"""The rows of a *run*, which are batches that were decoded together, and their rebuilding by compaction.

Each kind of payload has its own run (``filter_arrow``, ``filter_records``). ``filter`` explains which fields
of the envelope a batch keeps when it loses records.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sparklog.records.decoding import Batch
from sparklog.records.envelope import DELETE_HORIZON_BIT, BatchHeader, Bytes, build_envelope
from sparklog.records.row_columns import Int64s

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
        """Batch ``nth`` with only ``rows``, at least one, which are indexes into the run's rows.

        A delete horizon replaces the base timestamp; None keeps base timestamp and horizon.
        """


def rebuilt_envelope(
    header: BatchHeader,
    payload: Bytes | Sequence[Bytes],
    timestamps_ms: Int64s,
    delete_horizon_ms: int | None,
) -> bytes:
    """The batch ``header`` with a new payload, whose records have ``timestamps_ms``."""
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
