"""The metrics of a controller and its cluster (docs/metrics.md).

The image belongs to the event loop's thread, which may wait for ZooKeeper for long: a scrape must not wait
with it. So it reads from copies of lists and dictionaries, each made in one go, and what it finds in them
never changes. Two figures of one scrape may be a decision apart.
"""

from collections.abc import Iterator

from sparklog.controller.candidate import Candidate
from sparklog.core.controller.state.image import ClusterImage
from sparklog.model.cluster_facts import PartitionState
from sparklog.model.metric import Metric, counter, gauge


def controller_metrics(candidate: Candidate) -> list[Metric]:
    """All but the counter are 0 while another controller is in charge."""
    term = candidate.term if candidate.is_active else None
    image = None if term is None else term.image
    states = [] if image is None else list(_states(image))
    live = {} if image is None else dict(image.brokers)
    return [
        gauge("sparklog_controller_active", "1 for the controller in charge.", int(image is not None)),
        counter(
            "sparklog_controller_unclean_elections_total",
            "Elections by this controller that may have lost acknowledged records, one for each partition.",
            candidate.lossy_elections,
        ),
        gauge(
            "sparklog_controller_offline_partitions",
            "Partitions that no live broker leads.",
            sum(state is None or state.leader not in live for state in states),
        ),
        gauge(
            "sparklog_controller_preferred_replica_imbalance",
            "Partitions that another broker leads than their first replica, but for those being moved.",
            sum(state is not None and _is_led_by_another(state) for state in states),
        ),
        gauge("sparklog_controller_live_brokers", "Brokers that are registered.", len(live)),
    ]


def _states(image: ClusterImage) -> Iterator[PartitionState | None]:
    for topic in list(image.topics.values()):
        if not image.is_deleting(topic.name):
            yield from list(topic.states)


def _is_led_by_another(state: PartitionState) -> bool:
    is_moving = bool(state.adding or state.removing)
    return state.has_leader and state.leader != state.replicas[0] and not is_moving
