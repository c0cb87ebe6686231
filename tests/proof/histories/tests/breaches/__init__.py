"""For each rule histories that break it and nothing else, and histories beside them that are legal."""

from histories.tests.breaches import (
    of_former_leaders,
    of_groups,
    of_readers,
    of_records,
    of_rows,
    of_time_outs,
    of_transactions,
    of_writes,
)
from histories.tests.breaches.registry import BROKEN, LEGAL

__all__ = [
    "BROKEN",
    "LEGAL",
    "of_former_leaders",
    "of_groups",
    "of_readers",
    "of_records",
    "of_rows",
    "of_time_outs",
    "of_transactions",
    "of_writes",
]
