"""What several coordinators of this broker have to ask another broker, in one request at a time.

For each broker there is one loop. It takes all that waits for that broker, sends it as one request, and
hands the answer over; meanwhile the next request gathers. Nothing is sent again from here, because a leader
may have moved: the caller that put an item gets it back and decides.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from sparklog.model.cluster_facts import Node
from sparklog.model.errors import SparklogError
from sparklog.model.ids import BrokerId
from sparklog.model.loops import Await, CallBroker, Loop, Loops, Pause, Signal
from sparklog.model.ports import Guard

logger: Final = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")

BACKOFF_MS: Final = 50
"""Pause after a broker could not be asked."""

ITEMS_MAX: Final = 10_000
"""The most items in one request."""


@dataclass(frozen=True, slots=True)
class BrokerCalls:
    """How one kind of request reaches the other brokers.

    ``find_node``: a broker's address, None if metadata lack it. ``lane``: the connection to each broker that
    these requests have for themselves. ``timeout_ms``: the longest wait for an answer.
    """

    loops: Loops
    find_node: Callable[[BrokerId], Node | None]
    lane: int
    timeout_ms: int


class BrokerBatches(Generic[ItemT]):
    """Requests of one kind, on a connection of their own to each broker."""

    def __init__(
        self,
        name: str,
        calls: BrokerCalls,
        *,
        new_guard: Callable[[], Guard],
        request_of: Callable[[list[ItemT]], Any],
        deliver: Callable[[list[ItemT], Any | None], None],
    ) -> None:
        """``deliver`` gets the items of a request with its response, or with None if there is none. It is
        called on the loop's thread, and must be short.
        """
        self._name = name
        self._calls = calls
        self._guard = new_guard()
        self._request_of = request_of
        self._deliver = deliver
        self._queues: dict[BrokerId, _Queue[ItemT]] = {}

    def put(self, broker_id: BrokerId, item: ItemT) -> None:
        """Send ``item`` to that broker with the next request; for any thread."""
        with self._guard:
            queue = self._queues.get(broker_id)
            is_new = queue is None
            if queue is None:
                queue = self._queues[broker_id] = _Queue()
        queue.items.append(item)
        if is_new:
            begun = queue
            self._calls.loops.start(f"{self._name}-to-{broker_id}", lambda: self._loop(broker_id, begun))
        queue.arrived.give()

    def _loop(self, broker_id: BrokerId, queue: "_Queue[ItemT]") -> Loop:
        calls = self._calls
        while True:
            queue.arrived.take()
            items = queue.take()
            if not items:
                yield Await(queue.arrived)
                continue
            try:
                node = calls.find_node(broker_id)
                if node is None:
                    raise ConnectionError("its address is not known")
                response = yield CallBroker(node, self._request_of(items), calls.timeout_ms, calls.lane)
            except (OSError, SparklogError) as error:
                logger.info("%s: broker %d has not answered: %s", self._name, broker_id, error)
                self._deliver(items, None)
                yield Pause(BACKOFF_MS)
            else:
                self._deliver(items, response)


class _Queue(Generic[ItemT]):
    """What waits for one broker."""

    def __init__(self) -> None:
        self.items: deque[ItemT] = deque()
        self.arrived = Signal()

    def take(self) -> list[ItemT]:
        return [self.items.popleft() for _ in range(min(len(self.items), ITEMS_MAX))]
