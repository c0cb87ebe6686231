"""Events are followed without gap and without repetition, over a change of the controller too."""

from sparklog.web.event_tail import EVENTS_KEPT_MAX, EventTail
from sparklog.wire.messages.discovery.cluster_report import (
    ClusterReportRequest,
    ClusterReportResponse,
    ReportedEvent,
)


class Cluster:
    """Answers as a broker does: events after the one that is named, as many as are wanted."""

    def __init__(self) -> None:
        self.events: list[ReportedEvent] = []
        self.requests: list[ClusterReportRequest] = []

    def add(self, term: int, *numbers: int) -> None:
        self.events += [
            ReportedEvent(term=term, number=number, time_ms=0, kind="isr", subject="s") for number in numbers
        ]

    def answer(self, request: ClusterReportRequest) -> ClusterReportResponse:
        self.requests.append(request)
        after = request.after_term, request.after_number
        found = [event for event in self.events if (event.term, event.number) > after]
        last = self.events[-1]
        return ClusterReportResponse(
            term=last.term, last_number=last.number, events=found[: request.events_max]
        )


def kept(tail: EventTail) -> list[tuple[int, int]]:
    return [(event.term, event.number) for event in tail.kept]


def test_only_what_is_new_is_asked_for() -> None:
    cluster, tail = Cluster(), EventTail()
    cluster.add(1, 1, 2)
    tail.follow(cluster.answer)
    cluster.add(1, 3)
    cluster.add(2, 1)
    tail.follow(cluster.answer)
    assert kept(tail) == [(1, 1), (1, 2), (1, 3), (2, 1)]
    assert [(one.after_term, one.after_number) for one in cluster.requests] == [(-1, 0), (1, 2)]


def test_a_long_history_takes_several_requests_and_the_oldest_events_go() -> None:
    cluster, tail = Cluster(), EventTail()
    cluster.add(4, *range(1, EVENTS_KEPT_MAX + 1_501))
    tail.follow(cluster.answer)
    assert (kept(tail)[0], kept(tail)[-1]) == ((4, 1_501), (4, EVENTS_KEPT_MAX + 1_500))
    assert len(tail.kept) == EVENTS_KEPT_MAX
    tail.follow(cluster.answer)
    assert len(tail.kept) == EVENTS_KEPT_MAX


def test_an_answer_without_news_ends_the_asking() -> None:
    cluster, tail = Cluster(), EventTail()
    cluster.add(1, 1)
    tail.follow(cluster.answer)
    tail.follow(cluster.answer)
    assert (kept(tail), len(cluster.requests)) == ([(1, 1)], 2)
