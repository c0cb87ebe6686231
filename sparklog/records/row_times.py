"""Offsets and times of the rows of a batch."""

from typing import NamedTuple

from sparklog.records.row_columns import Int64s


class Times(NamedTuple):
    """One number for each row of a batch."""

    offsets: Int64s
    timestamps_ms: Int64s
