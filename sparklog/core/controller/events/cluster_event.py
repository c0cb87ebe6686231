"""One event: what a decision of the controller changed, in the words that people read.

An event is an action of the controller's machine, one for each decision however many partitions it changes.
The shell numbers it. The controller's log, its metrics and the stream that followers read are made from the
same value, so that they never differ.
"""

from dataclasses import dataclass
from enum import StrEnum

from sparklog.model.ids import BrokerId, ControllerEpoch


class EventKind(StrEnum):
    election = "election"
    isr = "isr"
    broker = "broker"
    controller = "controller"
    application = "application"
    topic = "topic"
    move = "move"
    operation = "operation"
    loss = "loss"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """``words`` say what happened, ``cause`` why, as far as it is known.

    An event whose ``subject`` or words name topics lists them all in ``topics``, so that it can be withheld
    from those who may not describe them.
    """

    kind: EventKind
    subject: str
    words: str
    cause: str = ""
    brokers: tuple[BrokerId, ...] = ()
    """The brokers that it is about."""
    topics: tuple[str, ...] = ()
    losses: int = 0
    """In how many partitions acknowledged records may be lost."""
    is_warning: bool = False

    def __str__(self) -> str:
        return f"{self.words} ({self.cause})" if self.cause else self.words


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    """An event of the controller of ``term``. Within a term the numbers rise by one, from 1."""

    term: ControllerEpoch
    number: int
    time_ms: int
    """Milliseconds since 1970, by the clock of the controller's host."""
    event: ClusterEvent

    def as_json(self) -> dict[str, object]:
        """As ``sparklog events --json`` prints it."""
        return {
            "term": int(self.term),
            "number": self.number,
            "time_ms": self.time_ms,
            "kind": self.event.kind.value,
            "subject": self.event.subject,
            "cause": self.event.cause,
            "words": self.event.words,
        }


def count_of(count: int, noun: str) -> str:
    """``1 partition``, ``34 partitions``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
