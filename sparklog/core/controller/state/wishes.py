"""What is wished of a broker. The controller writes it under its epoch; the broker's application obeys."""

from dataclasses import dataclass
from enum import StrEnum


class Wish(StrEnum):
    serving = "serving"
    stopped = "stopped"
    drained = "drained"
    """Stopped, after its replicas were moved to other brokers."""
    removed = "removed"
    """Stopped, and no longer listed: its settings and the proofs of its logs are deleted."""


@dataclass(frozen=True, slots=True)
class WishedBroker:
    """What an application obeys: the wish, and how often a start was asked for."""

    wish: Wish = Wish.serving
    starts: int = 0
