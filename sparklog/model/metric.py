"""One metric of a server, independent of the exporter."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """A *gauge* goes up and down; a *counter*, named ``.._total``, only rises, from 0 at the start; so do a
    *histogram*'s counts and its sum, which is ``value``.
    """

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    doc: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()
    """Name and value of each label. All metrics of one name have the same labels, and follow each other."""
    buckets: tuple[tuple[float, int], ...] = ()
    """How many of a histogram were not above each bound, ascending; the last bound is infinite."""


def gauge(name: str, doc: str, value: int, **labels: str) -> Metric:
    return Metric(name, "gauge", doc, value, tuple(labels.items()))


def counter(name: str, doc: str, value: float, **labels: str) -> Metric:
    return Metric(name, "counter", doc, value, tuple(labels.items()))


def histogram(
    name: str, doc: str, bounds: Sequence[float], counts: Sequence[int], total: float, **labels: str
) -> Metric:
    """``counts``: how many were above the bound before and not above their own; last, those above all."""
    buckets = tuple(zip((*bounds, inf), accumulate(counts), strict=True))
    return Metric(name, "histogram", doc, total, tuple(labels.items()), buckets)
