"""The newest events of the cluster, followed by asking for those after the last one that is here.

Nothing repeats and nothing is skipped within a term: an event is known by the term and its number in it.
"""

from collections.abc import Callable
from typing import Final

from sparklog.wire.messages.discovery.cluster_report import (
    ClusterReportRequest,
    ClusterReportResponse,
    ReportedEvent,
)

EVENTS_KEPT_MAX: Final = 10_000
EVENTS_PER_ASK: Final = 1_000


class EventTail:
    """``kept`` is one immutable tuple, oldest first, that each ``follow`` replaces. One thread follows."""

    def __init__(self) -> None:
        self.kept: tuple[ReportedEvent, ...] = ()

    def follow(self, ask: Callable[[ClusterReportRequest], ClusterReportResponse]) -> None:
        """Fetch what is new, in as many requests as it takes."""
        while True:
            last = _id(self.kept[-1]) if self.kept else (-1, 0)
            request = ClusterReportRequest(
                after_term=last[0], after_number=last[1], events_max=EVENTS_PER_ASK
            )
            report = ask(request)
            new = [event for event in report.events if _id(event) > last]
            self.kept = (*self.kept, *new)[-EVENTS_KEPT_MAX:]
            if not new or _id(new[-1]) >= (report.term, report.last_number):
                return


def _id(event: ReportedEvent) -> tuple[int, int]:
    return event.term, event.number
