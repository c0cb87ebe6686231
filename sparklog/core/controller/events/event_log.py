"""The newest events of one term of office, numbered from 1.

What is kept is one immutable tuple, replaced with each event: other threads read it without a lock, and a
number always means the same event. With ``EVENTS_MAX`` kept, the oldest one goes for each that comes.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from sparklog.core.controller.events.cluster_event import ClusterEvent, EventKind, NumberedEvent
from sparklog.model.ids import ControllerEpoch

EVENTS_MAX: Final = 10_000


@dataclass(slots=True)
class EventLog:
    term: ControllerEpoch
    kept: tuple[NumberedEvent, ...] = ()
    counts: Counter[EventKind] = field(default_factory=Counter)
    """All events of the term, those that are no longer kept included."""

    @property
    def last_number(self) -> int:
        """0 before the first event."""
        return self.kept[-1].number if self.kept else 0

    def add(self, event: ClusterEvent, time_ms: int) -> NumberedEvent:
        numbered = NumberedEvent(self.term, self.last_number + 1, time_ms, event)
        self.counts[event.kind] += 1
        self.kept = (*self.kept[-(EVENTS_MAX - 1) :], numbered)
        return numbered


def events_after(kept: tuple[NumberedEvent, ...], number: int, at_most: int) -> tuple[NumberedEvent, ...]:
    """The first ``at_most`` of ``kept``, which are of one term, that follow event ``number``."""
    if not kept:
        return ()
    begin = max(0, number + 1 - kept[0].number)
    return kept[begin : begin + at_most]
