"""This broker's copy of the controller's report, from which it answers everybody who asks.

A request renews a copy that is older than ``FRESH_MS``, in at most one call at a time, however many ask.
While no controller answers, the last copy is given with its age. The copy outlives a term: it keeps the
newest events of all terms that it has seen, so that who follows gets the end of the former term, too.
"""

import logging
from dataclasses import replace
from typing import Final

from sparklog.broker.ports import ToController
from sparklog.model.errors import ErrorCode, KafkaError, WireError
from sparklog.model.ports import Guard
from sparklog.model.time import Clock
from sparklog.wire.messages.discovery.cluster_report import (
    ClusterReportRequest,
    ClusterReportResponse,
    ReportedEvent,
)

logger: Final = logging.getLogger(__name__)

FRESH_MS: Final = 1_000
ASK_TIMEOUT_MS: Final = 2_000
EVENTS_KEPT_MAX: Final = 10_000
EVENTS_PER_ANSWER_MAX: Final = 1_000
LANE: Final = "reports"
NO_COPY: Final = "this broker has no report of the cluster yet, and no controller answers; try again"

EventId = tuple[int, int]
"""Term and number, which order events."""


class ReportCopy:
    """May be called from any thread; a call may block for as long as a controller is asked."""

    def __init__(self, controller: ToController, clock: Clock, guard: Guard) -> None:
        self._controller = controller
        self._clock = clock
        self._guard = guard
        self._asked_ms: int | None = None
        self._is_asking = False
        self._copy: ClusterReportResponse | None = None
        self._copied_ms = 0
        self._events: tuple[ReportedEvent, ...] = ()
        self._refusal = (ErrorCode.request_timed_out, NO_COPY)

    def answer(self, request: ClusterReportRequest) -> ClusterReportResponse:
        if self._may_ask():
            try:
                self._renew()
            finally:
                self._is_asking = False
        with self._guard:
            copy, copied_ms, events, (code, words) = self._copy, self._copied_ms, self._events, self._refusal
        if copy is None:
            return ClusterReportResponse(error_code=code, error_message=words)
        chosen = _after(events, (request.after_term, request.after_number), request.events_max)
        age_ms = copy.age_ms + self._clock.monotonic_ms() - copied_ms
        metrics = copy.metrics if request.wants_metrics else []
        return replace(copy, age_ms=age_ms, events=chosen, metrics=metrics)

    def _may_ask(self) -> bool:
        """Whether this thread is to ask the controller now."""
        with self._guard:
            now_ms = self._clock.monotonic_ms()
            is_fresh = self._asked_ms is not None and now_ms - self._asked_ms < FRESH_MS
            if is_fresh or self._is_asking:
                return False
            self._is_asking, self._asked_ms = True, now_ms
            return True

    def _renew(self) -> None:
        """Ask until all new events are here."""
        try:
            while self._ask():
                pass
        except KafkaError as error:
            logger.info("the controller gives no report: %s", error)
            words = f"the controller in office gives no reports, it may be of an older release: {error}"
            self._refusal = (error.code, words)
        except (OSError, WireError) as error:
            logger.info("no controller gives a report: %s", error)
            self._refusal = (ErrorCode.request_timed_out, NO_COPY)

    def _ask(self) -> bool:
        """Whether there are more events."""
        began_ms = self._clock.monotonic_ms()
        newest = _id(self._events[-1]) if self._events else (-1, 0)
        request = ClusterReportRequest(
            after_term=newest[0],
            after_number=newest[1],
            events_max=EVENTS_PER_ANSWER_MAX,
            wants_metrics=True,
        )
        response: ClusterReportResponse = self._controller.call(request, timeout_ms=ASK_TIMEOUT_MS, lane=LANE)
        if response.error_code is not ErrorCode.none:
            raise KafkaError(response.error_code, response.error_message or "")
        new = [event for event in response.events if _id(event) > newest]
        with self._guard:
            self._copy, self._copied_ms = replace(response, events=[]), began_ms
            self._events = (*self._events, *new)[-EVENTS_KEPT_MAX:]
        return bool(new) and new[-1].number < response.last_number


def _id(event: ReportedEvent) -> EventId:
    return event.term, event.number


def _after(events: tuple[ReportedEvent, ...], after: EventId, at_most: int) -> list[ReportedEvent]:
    """The first ``at_most`` events that follow ``after``, as many as one answer takes."""
    at_most = min(at_most, EVENTS_PER_ANSWER_MAX)
    if at_most <= 0 or not events or _id(events[-1]) <= after:
        return []
    begin = next(position for position, event in enumerate(events) if _id(event) > after)
    return list(events[begin : begin + at_most])
