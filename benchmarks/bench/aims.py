"""What a figure should come to: the row says it in its remark, where docs/performance.md finds it.

The aim is about the ratio to Kafka where a row has both sides, else about our own figure.
"""

import re
from typing import Final

from bench.report import Row

_REMARK: Final = re.compile(r"aim (?P<side>[≥≤]) (?P<bound>[\d.]+)")


def at_least(bound: float) -> str:
    return f"aim ≥ {bound:g}"


def at_most(bound: float) -> str:
    return f"aim ≤ {bound:g}"


def aim_of(row: Row) -> str:
    """As a remark says it, without the word; empty if the row has none."""
    found = _REMARK.search(row.note)
    return "" if found is None else f"{found['side']} {found['bound']}"


def judged(row: Row) -> float:
    """The figure that the aim is about."""
    return row.ours if row.ratio is None else row.ratio


def is_reached(row: Row) -> bool:
    """ValueError if the row has no aim."""
    found = _REMARK.search(row.note)
    if found is None:
        raise ValueError(f"no aim in the remark of {row.work!r}: {row.note!r}")
    bound = float(found["bound"])
    return judged(row) >= bound if found["side"] == "≥" else judged(row) <= bound
