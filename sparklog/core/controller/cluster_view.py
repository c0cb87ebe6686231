"""The cluster as other threads may see it: an immutable value, made anew when the image has changed.

It has brokers, counts and events. Partitions are not in it, because there may be very many, and Metadata have
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sparklog.core.controller.events.cluster_event import EventKind, NumberedEvent
from sparklog.core.controller.events.event_log import EventLog
from sparklog.core.controller.state.applications import Application, KnownBroker
from sparklog.core.controller.state.image import ClusterImage
from sparklog.model.cluster_facts import Broker
from sparklog.model.ids import NO_LEADER, BrokerId, ControllerEpoch


@dataclass(frozen=True, slots=True)
class BrokerView:
    """One registered broker, with counts of its partitions."""

    broker: Broker
    is_stopping: bool
    leaders: int
    replicas: int
    in_sync: int


@dataclass(frozen=True, slots=True)
class ClusterView:
    epoch: ControllerEpoch
    brokers: Mapping[BrokerId, BrokerView]
    topics: int
    partitions: int
    leaderless: int
    """Partitions that no live broker leads."""
    under_replicated: int
    led_by_another: int
    """Partitions that another broker leads than their first replica, but for those being moved."""
    moving: int
    known: Mapping[BrokerId, KnownBroker]
    """Every broker that has registered and was not removed."""
    away: Mapping[BrokerId, tuple[int, int]]
    """For each of them that is not registered, in how many partitions it is a replica, and in sync."""
    applications: tuple[Application, ...]
    events: tuple[NumberedEvent, ...]
    """The newest of this term."""
    event_counts: Mapping[EventKind, int]
    """All of this term."""
    changes: int
    """``ClusterImage.changes`` when this was made."""

    def is_of(self, image: ClusterImage, log: EventLog) -> bool:
        """Whether nothing has changed since this was made, in the same term."""
        return self.changes == image.changes and self.events is log.kept


def view_of(image: ClusterImage, log: EventLog) -> ClusterView:
    counts = image.counts
    led = sum(counts.leaders[broker] for broker in image.brokers if broker != NO_LEADER)
    return ClusterView(
        epoch=image.controller_epoch,
        brokers={
            broker: BrokerView(
                live.broker,
                broker in image.shutting_down,
                counts.leaders[broker],
                counts.replicas[broker],
                counts.in_sync[broker],
            )
            for broker, live in sorted(image.brokers.items())
        },
        known=dict(sorted(image.known.items())),
        away={
            broker: (counts.replicas[broker], counts.in_sync[broker])
            for broker in image.known
            if broker not in image.brokers
        },
        applications=image.applications,
        topics=len(image.topics) - len(image.deletions),
        partitions=counts.partitions,
        leaderless=counts.partitions - led,
        under_replicated=counts.under_replicated,
        led_by_another=counts.led_by_another,
        moving=counts.moving,
        events=log.kept,
        event_counts=dict(log.counts),
        changes=image.changes,
    )
