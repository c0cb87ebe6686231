"""One metric of a server, independent of the exporter."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """A *gauge* goes up and down; a *counter*, named ``.._total``, only rises, from 0 at the start."""

    name: str
    kind: Literal["gauge", "counter"]
    doc: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()
    """Name and value of each label. All metrics of one name have the same labels, and follow each other."""


def gauge(name: str, doc: str, value: int, **labels: str) -> Metric:
    return Metric(name, "gauge", doc, value, tuple(labels.items()))


def counter(name: str, doc: str, value: float, **labels: str) -> Metric:
    return Metric(name, "counter", doc, value, tuple(labels.items()))
