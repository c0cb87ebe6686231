"""The broker's ports to the outside, so that a simulation can replace it.

Handlers, partitions and their roles, directories, waits and fetchers take no lock but the guards that are
given to them, start no thread, and read no clock but the one that they get.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from sparklog.core.replication.actions import ProposeIsr
from sparklog.model.ids import LeaderEpoch, NamedTopic, TopicPartition
from sparklog.model.ports import Executor, Guard, Timer
from sparklog.model.time import Clock


class ToController(Protocol):
    """Requests to the active controller."""

    def call(self, message: Any, *, timeout_ms: int, lane: str = "") -> Any:
        """Send ``message`` and wait for its response; raises OSError if no controller answers in time. Each
        ``lane`` has a connection of its own.
        """

    def call_when_reachable(self, message: Any, *, timeout_ms: int) -> Any:
        """As ``call``, but wait for a controller that can be reached; a message is sent once at most."""


class IsrProposals(Protocol):
    """Where proposals to change an ISR go."""

    def propose(self, topic_partition: TopicPartition, proposal: ProposeIsr) -> None: ...


class LeadershipListener(Protocol):
    """Is notified of the leader epochs in which this broker leads a partition; a coordinator needs them.

    For each partition the calls alternate, and epochs rise. The thread that empties the outbox makes the
    calls in order, outside the partition's lock. It may be handling a LeaderAndIsr: do slow work on another
    thread. A late notification is harmless, because an append that names its epoch is refused once a later
    one has begun.
    """

    def began_leading(self, topic_partition: TopicPartition, leader_epoch: LeaderEpoch) -> None: ...

    def ceased_leading(self, topic_partition: TopicPartition, leader_epoch: LeaderEpoch) -> None: ...


class Coordinators(Protocol):
    """The coordinators of this broker, as handlers ask them. No call waits: ``reply`` may be called before
    it returns, or later, by any thread, and exactly once.
    """

    def submit(self, topic: str, request: Any, reply: Callable[[Any], None]) -> None:
        """Ask the coordinator of ``request.key``; NOT_COORDINATOR if another broker has it.

        ``topic``: the internal topic of the kind of coordinator. ``request``: a
        ``core.coordinator.state_machine.Request``.
        """

    def submit_to_every_host(self, topic: str, request: Any, reply: Callable[[list[Any]], None]) -> None:
        """Ask every coordinator of that kind on this broker a request whose key is None; ``reply`` gets all
        their responses together, none if this broker has no coordinator.
        """

    def on_end(self, topic_partition: TopicPartition, producer_id: int, is_commit: bool, offset: int) -> None:
        """A producer's marker is at ``offset`` of an internal topic's partition, below the high watermark.
        For each producer the calls come in the order of the offsets.
        """

    def on_topics_deleted(self, topics: Iterable[NamedTopic]) -> None:
        """These topics are gone. Others may have been made under their names."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The outside world of one broker."""

    clock: Clock
    timer: Timer
    executor: Executor
    new_guard: Callable[[], Guard]
