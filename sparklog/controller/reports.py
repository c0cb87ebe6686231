"""ClusterReport as the controller answers it, from the view that its event loop publishes."""

from collections.abc import Callable, Iterable
from typing import Final

from sparklog import __version__
from sparklog.core.controller.cluster_view import ClusterView, OperationView
from sparklog.core.controller.events.cluster_event import NumberedEvent
from sparklog.core.controller.events.event_log import events_after
from sparklog.core.controller.state.applications import HostedBroker, KnownBroker, host_of
from sparklog.core.controller.state.wishes import Wish
from sparklog.core.controller.state.znodes import ControllerNode
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import BrokerId
from sparklog.model.metric import Metric
from sparklog.wire.messages.discovery.cluster_report import (
    ClusterReportRequest,
    ClusterReportResponse,
    ReportedBroker,
    ReportedController,
    ReportedEvent,
    ReportedOperation,
    ReportedWait,
)
from sparklog.wire.reported_metrics import reported

EVENTS_PER_ANSWER_MAX: Final = 1_000
SERVING: Final = "serving"
AWAY: Final = "away"
STOPPING: Final = "stopping"
DRAINING: Final = "draining"
WITHOUT_SESSION: Final = "its process runs, and its registration is gone: it does not reach ZooKeeper"


def report_of(
    view: ClusterView | None,
    node: ControllerNode | None,
    request: ClusterReportRequest,
    read_metrics: Callable[[], Iterable[Metric]] = tuple,
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
        controllers=_controllers(view, node),
        brokers=[_broker(view, broker) for broker in view.known],
        topics=view.topics,
        partitions=view.partitions,
        leaderless=view.leaderless,
        under_replicated=view.under_replicated,
        moving=view.moving,
        last_number=view.events[-1].number if view.events else 0,
        events=[_event(one) for one in events],
        operations=[_operation(one) for one in view.operations],
        metrics=reported(read_metrics()) if request.wants_metrics else [],
    )


def _controllers(view: ClusterView, node: ControllerNode) -> list[ReportedController]:
    """This one, and the standbys of other applications."""
    own = ReportedController(
        application=node.application, host=node.host, port=node.port, is_active=True, release=__version__
    )
    standbys = []
    for one in view.applications:
        if one.name == node.application:
            own.web_url = one.web_url or None
            own.spark_warnings = list(one.spark_warnings)
        else:
            standbys.append(
                ReportedController(
                    application=one.name,
                    host=one.host,
                    port=one.port,
                    is_active=False,
                    release=one.release or None,
                    web_url=one.web_url or None,
                    spark_warnings=list(one.spark_warnings),
                )
            )
    return [own, *standbys]


def _broker(view: ClusterView, broker_id: BrokerId) -> ReportedBroker:
    known, live = view.known[broker_id], view.brokers.get(broker_id)
    application = host_of(view.applications, broker_id)
    hosted = None if application is None else application.hosted(broker_id)
    report = ReportedBroker(
        broker_id=broker_id,
        host=known.host or None,
        application=known.application or None,
        release=known.release or None,
        wish=known.wish.value,
    )
    if hosted is not None:
        report.reason, report.since_ms, report.relaunches = (
            hosted.reason or None,
            hosted.since_ms,
            hosted.relaunches,
        )
    if live is None:
        report.state = _state_without_session(known, hosted)
        if hosted is not None and hosted.state == SERVING:
            report.reason, report.since_ms = WITHOUT_SESSION, -1
        report.replicas, report.in_sync = view.away[broker_id]
        if known.wish is not Wish.serving:
            report.reason = f"start it with: sparklog brokers start {broker_id}"
        elif application is None:
            report.reason = f"no application runs it{_since_when(known)}"
        return report
    endpoint = next(iter(live.broker.endpoints.values()), None)
    if endpoint is not None:
        report.host, report.port = endpoint.host, endpoint.port
    report.rack = live.broker.rack
    report.state = STOPPING if live.is_stopping else DRAINING if live.is_being_drained else SERVING
    report.leaders, report.replicas, report.in_sync = live.leaders, live.replicas, live.in_sync
    return report


def _state_without_session(known: KnownBroker, hosted: HostedBroker | None) -> str:
    if known.wish is not Wish.serving:
        return known.wish.value
    return hosted.state if hosted is not None and hosted.state != SERVING else AWAY


def _operation(view: OperationView) -> ReportedOperation:
    operation = view.operation
    return ReportedOperation(
        id_=operation.id,
        kind=operation.kind.value,
        brokers=list(operation.brokers),
        state=operation.state.value,
        reason=operation.reason or None,
        done=view.done,
        total=operation.total,
        waits=[ReportedWait(words=wait.words, topics=list(wait.topics)) for wait in view.waits],
        requested_by=operation.requested_by,
        since_ms=operation.since_ms,
    )


def _since_when(known: KnownBroker) -> str:
    return f"; the last one was {known.application}" if known.application else ""


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
