"""Events about brokers that come and go."""

from typing import Final

from sparklog.core.controller.events.cluster_event import ClusterEvent, EventKind
from sparklog.model.cluster_facts import Broker

UNKNOWN_END: Final = "its session in ZooKeeper ended"


def registered_event(broker: Broker) -> ClusterEvent:
    return _event(broker, "serves")


def left_event(broker: Broker, *, has_ended: bool, was_stopping: bool, cause: str) -> ClusterEvent:
    """``cause``: how its process ended, as far as its supervisor said it."""
    if was_stopping:
        return _event(broker, "stopped", cause)
    if has_ended:
        return _event(broker, "died", cause, is_warning=True)
    return _event(broker, "is away", UNKNOWN_END, is_warning=True)


def _event(broker: Broker, words: str, cause: str = "", *, is_warning: bool = False) -> ClusterEvent:
    subject = f"broker {broker.id}"
    host = next(iter(broker.endpoints.values())).host if broker.endpoints else ""
    where = f" on {host}" if host else ""
    return ClusterEvent(
        EventKind.broker,
        subject,
        f"{subject}{where} {words}",
        cause,
        brokers=(broker.id,),
        is_warning=is_warning,
    )
