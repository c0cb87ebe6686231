"""What the broker's glue needs from outside, so that a simulation can stand in for it.

The replica manager, the fetch and produce paths and the fetchers take no lock but the guards that are given
to them, start no thread, and read no clock but the one that they get.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from sparklog.core.replication.actions import ProposeIsr
from sparklog.model.cluster import Broker
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.ports import Executor, Guard, Timer
from sparklog.model.time import Clock


class Peers(Protocol):
    """Requests to other brokers."""

    def call(self, broker: Broker, message: Any, *, timeout_ms: int) -> Any:
        """Send ``message`` and wait for its response; raises OSError if the peer cannot be reached."""

    def forget(self, broker_id: BrokerId) -> None:
        """Close the connection to this broker; a call that waits on it ends with OSError."""


class ToController(Protocol):
    """Requests to the active controller."""

    def call(self, message: Any, *, timeout_ms: int) -> Any:
        """Send ``message`` and wait for its response; raises OSError if no controller answers in time."""


class IsrProposals(Protocol):
    """Where proposals to change an ISR go."""

    def propose(self, topic_partition: TopicPartition, proposal: ProposeIsr) -> None: ...


@dataclass(frozen=True, slots=True)
class Ports:
    """The outside world of one broker."""

    clock: Clock
    timer: Timer
    executor: Executor
    new_guard: Callable[[], Guard]
