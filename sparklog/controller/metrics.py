"""The metrics of a controller and its cluster (docs/metrics.md), from the view that its event loop publishes:
a scrape waits for nothing, and asks nothing of the loop.
"""

from collections.abc import Iterator

from sparklog.controller.candidate import Candidate
from sparklog.core.controller.cluster_view import ClusterView
from sparklog.core.controller.events.cluster_event import EventKind
from sparklog.model.metric import Metric, counter, gauge


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
        *(() if view is None else _of_the_term(view)),
    ]


def _of_the_term(view: ClusterView) -> Iterator[Metric]:
    for kind in EventKind:
        yield counter(
            "sparklog_controller_events_total",
            "Events since this controller was elected, as `sparklog events` shows them.",
            view.event_counts.get(kind, 0),
            kind=kind.value,
        )
    yield counter(
        "sparklog_controller_broker_relaunches_total",
        "Times that the applications which run now have launched a broker again.",
        sum(hosted.relaunches for application in view.applications for hosted in application.brokers),
    )
