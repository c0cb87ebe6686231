"""Connections on which a batch was refused with a retriable error: later batches must not overtake it."""

from sparklog.core.producers.refused_batches import RefusingConnections
from sparklog.model.ids import TOPIC_NAME_LENGTH_MAX, TopicPartition
from sparklog.model.ports import Guard


class Refusals:
    """``RefusingConnections`` for many threads. Without a refusal no request takes the guard."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._refusing = RefusingConnections()

    def on_produce_request(self, connection_id: int) -> None:
        """To be called before a produce request is examined."""
        if self._refusing.connections:
            with self._guard:
                self._refusing.on_request(connection_id)

    def note(self, connection_id: int, topic_partition: TopicPartition) -> None:
        """Record that a batch was refused on this connection with a retriable error."""
        if len(topic_partition.topic) <= TOPIC_NAME_LENGTH_MAX:
            with self._guard:
                self._refusing.note(connection_id, topic_partition)

    def has_refused(self, connection_id: int, topic_partition: TopicPartition) -> bool:
        """Whether batches on this connection may have been sent after a batch that was refused."""
        if not self._refusing.connections:
            return False
        with self._guard:
            return self._refusing.has_refused(connection_id, topic_partition)
