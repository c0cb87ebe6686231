"""The metrics of a controller and its cluster (docs/metrics.md), from the view that its event loop publishes:
a scrape waits for nothing, and asks nothing of the loop.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from sparklog.controller.candidate import Candidate
from sparklog.core.controller.cluster_view import ClusterView
from sparklog.core.controller.events.cluster_event import EventKind
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.state.operations import OperationState
from sparklog.model.metric import Metric, counter, gauge

_WORKING: Final = "working"
_WAITING: Final = "waiting"
_RESULTS: Final = tuple(state for state in OperationState if state is not OperationState.running)


def controller_metrics(candidate: Candidate) -> list[Metric]:
    """All but the counter are 0 while another controller is in charge."""
    view = candidate.view
    return [
        gauge("sparklog_controller_active", "1 for the controller in charge.", int(view is not None)),
        counter(
            "sparklog_controller_unclean_elections_total",
            "Elections by this controller that may have lost acknowledged records, one for each partition.",
            candidate.lossy_elections,
        ),
        gauge(
            "sparklog_controller_offline_partitions",
            "Partitions that no live broker leads.",
            0 if view is None else view.leaderless,
        ),
        gauge(
            "sparklog_controller_preferred_replica_imbalance",
            "Partitions that another broker leads than their first replica, but for those being moved.",
            0 if view is None else view.led_by_another,
        ),
        gauge(
            "sparklog_controller_live_brokers",
            "Brokers that are registered.",
            0 if view is None else len(view.brokers),
        ),
        *(() if view is None else _of_the_term(view, candidate.wall_ms_of)),
    ]


def _of_the_term(view: ClusterView, wall_ms_of: Callable[[int], int]) -> Iterator[Metric]:
    for kind in EventKind:
        yield counter(
            "sparklog_controller_events_total",
            "Events since this controller was elected, as `sparklog events` shows them.",
            view.event_counts.get(kind, 0),
            kind=kind.value,
        )
    yield from _operation_metrics(view, wall_ms_of)
    yield counter(
        "sparklog_controller_broker_relaunches_total",
        "Times that the applications which run now have launched a broker again.",
        sum(hosted.relaunches for application in view.applications for hosted in application.brokers),
    )


def _operation_metrics(view: ClusterView, wall_ms_of: Callable[[int], int]) -> Iterator[Metric]:
    running = [one for one in view.operations if one.operation.is_running]
    counts = Counter((one.operation.kind, _WAITING if one.waits else _WORKING) for one in running)
    for kind in OperationKind:
        for state in (_WORKING, _WAITING):
            yield gauge(
                "sparklog_controller_operations",
                "Operations under way: what works, and what waits.",
                counts[kind, state],
                kind=kind.value,
                state=state,
            )
    waiting = [one.waiting_since_ms for one in running if one.waiting_since_ms is not None]
    yield gauge(
        "sparklog_controller_operations_waiting_since_milliseconds",
        "Since when the longest wait of an operation lasts, by the wall clock since 1970; 0: none waits.",
        wall_ms_of(min(waiting)) if waiting else 0,
    )
    for kind in OperationKind:
        for result in _RESULTS:
            yield counter(
                "sparklog_controller_operations_ended_total",
                "Operations that ended since this controller was elected.",
                view.ended_operations.get((kind, result), 0),
                kind=kind.value,
                result=result.value,
            )
