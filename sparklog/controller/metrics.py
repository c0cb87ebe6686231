"""The metrics of a controller and its cluster (docs/metrics.md), from the view that its event loop publishes:
a scrape waits for nothing, and asks nothing of the loop.
"""

from sparklog.controller.candidate import Candidate
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
    ]
