"""The cluster as other threads may see it: an immutable value, made anew when the image has changed.

It has brokers, counts and events. Partitions are not in it, because there may be very many, and Metadata have
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from sparklog.core.controller.events.cluster_event import EventKind, NumberedEvent
from sparklog.core.controller.events.event_log import EventLog
from sparklog.core.controller.operation_kind import OperationKind
from sparklog.core.controller.operations.looks import OperationLooks
from sparklog.core.controller.operations.operation_progress import done_of
from sparklog.core.controller.operations.operation_writes import Wait
from sparklog.core.controller.state.applications import Application, KnownBroker
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.operations import Operation, OperationState
from sparklog.core.controller.state.wishes import Wish
from sparklog.model.cluster_facts import Broker
from sparklog.model.ids import NO_LEADER, BrokerId, ControllerEpoch

NO_WAITS: Final[Mapping[int, tuple[Wait, ...]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BrokerView:
    """One registered broker, with counts of its partitions."""

    broker: Broker
    is_stopping: bool
    is_being_drained: bool
    leaders: int
    replicas: int
    in_sync: int


@dataclass(frozen=True, slots=True)
class OperationView:
    """``done``: how much of its total. ``waits``: what it waits for; empty while something moves.
    ``waiting_since_ms``: when it began to wait, by the monotonic clock; None while it does not.
    """

    operation: Operation
    done: int
    waits: tuple[Wait, ...]
    waiting_since_ms: int | None = None


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
    operations: tuple[OperationView, ...]
    """Those under way, and the last ones that ended, by id."""
    events: tuple[NumberedEvent, ...]
    """The newest of this term."""
    event_counts: Mapping[EventKind, int]
    """All of this term."""
    ended_operations: Mapping[tuple[OperationKind, OperationState], int]
    """Those that ended in this term, by kind and result."""
    changes: int
    """``ClusterImage.changes`` when this was made."""

    def is_of(self, image: ClusterImage, log: EventLog) -> bool:
        """Whether nothing has changed since this was made, in the same term."""
        return self.changes == image.changes and self.events is log.kept


def view_of(
    image: ClusterImage,
    log: EventLog,
    looks: OperationLooks | None = None,
    ended: Mapping[tuple[OperationKind, OperationState], int] = MappingProxyType({}),
) -> ClusterView:
    """``looks``: what operations wait for, and since when. ``ended``: those that ended in this term."""
    waits = NO_WAITS if looks is None else looks.waits
    since_ms: Mapping[int, int] = MappingProxyType({}) if looks is None else looks.waiting_since_ms
    counts = image.counts
    known = {one: found for one, found in sorted(image.known.items()) if _is_listed(image, one)}
    led = sum(counts.leaders[broker] for broker in image.brokers if broker != NO_LEADER)
    return ClusterView(
        epoch=image.controller_epoch,
        brokers={
            broker: BrokerView(
                live.broker,
                broker in image.shutting_down or image.wish(broker) is not Wish.serving,
                image.is_being_drained(broker),
                counts.leaders[broker],
                counts.replicas[broker],
                counts.in_sync[broker],
            )
            for broker, live in sorted(image.brokers.items())
        },
        known=known,
        away={
            broker: (counts.replicas[broker], counts.in_sync[broker])
            for broker in known
            if broker not in image.brokers
        },
        applications=image.applications,
        operations=tuple(
            OperationView(
                operation,
                done_of(image, operation) if operation.is_running else operation.done,
                waits.get(one, ()) if operation.is_running else (),
                since_ms.get(one) if operation.is_running and waits.get(one) else None,
            )
            for one, operation in sorted(image.operations.items())
        ),
        topics=len(image.topics) - len(image.deletions),
        partitions=counts.partitions,
        leaderless=counts.partitions - led,
        under_replicated=counts.under_replicated,
        led_by_another=counts.led_by_another,
        moving=counts.moving,
        events=log.kept,
        event_counts=dict(log.counts),
        ended_operations=dict(ended),
        changes=image.changes,
    )


def _is_listed(image: ClusterImage, broker: BrokerId) -> bool:
    return broker in image.brokers or image.wish(broker) is not Wish.removed
