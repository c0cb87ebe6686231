"""ClusterReport as the controller answers it, from the view that its event loop publishes."""

from typing import Final

from sparklog.core.controller.cluster_view import BrokerView, ClusterView
from sparklog.core.controller.events.cluster_event import NumberedEvent
from sparklog.core.controller.events.event_log import events_after
from sparklog.core.controller.state.znodes import ControllerNode
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.discovery.cluster_report import (
    ClusterReportRequest,
    ClusterReportResponse,
    ReportedBroker,
    ReportedController,
    ReportedEvent,
)

EVENTS_PER_ANSWER_MAX: Final = 1_000


def report_of(
    view: ClusterView | None, node: ControllerNode | None, request: ClusterReportRequest
) -> ClusterReportResponse:
    """``node``: this candidate; ``view`` is None while it is not in office."""
    if view is None or node is None:
        return ClusterReportResponse(
            error_code=ErrorCode.not_controller, error_message="This is not the active controller."
        )
    after = request.after_number if request.after_term == view.epoch else 0
    at_most = min(max(0, request.events_max), EVENTS_PER_ANSWER_MAX)
    is_ahead = request.after_term > view.epoch
    events = () if is_ahead else events_after(view.events, after, at_most)
    return ClusterReportResponse(
        term=view.epoch,
        controllers=[
            ReportedController(application=node.application, host=node.host, port=node.port, is_active=True)
        ],
        brokers=[_broker(one) for one in view.brokers.values()],
        topics=view.topics,
        partitions=view.partitions,
        leaderless=view.leaderless,
        under_replicated=view.under_replicated,
        moving=view.moving,
        last_number=view.events[-1].number if view.events else 0,
        events=[_event(one) for one in events],
    )


def _broker(view: BrokerView) -> ReportedBroker:
    broker = view.broker
    endpoint = next(iter(broker.endpoints.values()), None)
    return ReportedBroker(
        broker_id=broker.id,
        host=None if endpoint is None else endpoint.host,
        port=-1 if endpoint is None else endpoint.port,
        rack=broker.rack,
        state="stopping" if view.is_stopping else "serving",
        leaders=view.leaders,
        replicas=view.replicas,
        in_sync=view.in_sync,
        wish="serving",
    )


def _event(numbered: NumberedEvent) -> ReportedEvent:
    event = numbered.event
    return ReportedEvent(
        term=numbered.term,
        number=numbered.number,
        time_ms=numbered.time_ms,
        kind=event.kind.value,
        subject=event.subject,
        cause=event.cause,
        words=event.words,
        brokers=list(event.brokers),
        topics=list(event.topics),
    )
