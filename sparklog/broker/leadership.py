"""Notifies coordinators, which live with a leader, when partitions of this broker begin and cease to lead."""

import logging
from typing import Final

from sparklog.broker.ports import LeadershipListener
from sparklog.core.replication.actions import BeganLeading, CeasedLeading
from sparklog.model.ids import TopicPartition

logger: Final = logging.getLogger(__name__)


class LeadershipListeners:
    """Notifies its listeners in the order of each partition's outbox."""

    def __init__(self) -> None:
        self._listeners: tuple[LeadershipListener, ...] = ()

    def add_listener(self, listener: LeadershipListener) -> None:
        """Notify ``listener`` from now on; add it before the first role, or it misses that role's begin."""
        self._listeners += (listener,)

    def announce(self, topic_partition: TopicPartition, change: BeganLeading | CeasedLeading) -> None:
        """Called outside all partition locks. A listener that fails is logged."""
        for listener in self._listeners:
            try:
                if isinstance(change, BeganLeading):
                    listener.began_leading(topic_partition, change.leader_epoch)
                else:
                    listener.ceased_leading(topic_partition, change.leader_epoch)
            except Exception:
                # The other listeners, and the partition's other effects, must not suffer from its bug.
                logger.exception("%s was not notified of a change of leadership", type(listener).__name__)
