"""One figure that a server tells about itself, whoever carries it to people."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Metric:
    """A *gauge* goes up and down; a *counter*, named ``.._total``, only up, from 0 at its server's start."""

    name: str
    kind: Literal["gauge", "counter"]
    doc: str
    value: int


def gauge(name: str, doc: str, value: int) -> Metric:
    return Metric(name, "gauge", doc, value)


def counter(name: str, doc: str, value: int) -> Metric:
    return Metric(name, "counter", doc, value)
