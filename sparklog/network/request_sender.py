"""Requests to one broker: queued, in order, one under way at a time, each sent again until it is answered.

Whoever sends waits for nothing: a callback gets the response. A request is sent again after every failure,
because its answer may be all that was lost: send only what may be repeated. The next request waits for the
one before, so that the receiver sees them in order, some of them twice. A request may have a deadline, after
which it is given up; the queue may have a bound, beyond which requests are refused. ``close`` forgets what
waits.

The broker's address is looked up for every attempt. ``moved`` ends an attempt at the old address.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from sparklog.model.cluster import Node
from sparklog.model.errors import SparklogError
from sparklog.model.ids import BrokerId
from sparklog.model.loops import Await, CallBroker, Loop, Signal
from sparklog.model.ports import Guard
from sparklog.model.time import Clock, MonotonicMs

logger: Final = logging.getLogger(__name__)

BACKOFF_MS: Final = 50
"""Pause after the first failure of a request; doubles with every further failure."""

BACKOFF_MAX_MS: Final = 1_000

OnResponse = Callable[[Any], None]
OnFailure = Callable[[Exception], None]


@dataclass(frozen=True, slots=True)
class _Request:
    message: Any
    on_response: OnResponse
    on_failure: OnFailure
    deadline_ms: MonotonicMs | None


class RequestSender:
    """The queue of requests to one broker, and the ``loop`` that sends them."""

    def __init__(
        self,
        broker_id: BrokerId,
        find_node: Callable[[BrokerId], Node | None],
        hang_up: Callable[[BrokerId], None],
        *,
        guard: Guard,
        clock: Clock,
        request_timeout_ms: int,
        queue_max: int | None = None,
    ) -> None:
        """``find_node`` returns the broker's address, None while nobody knows it. ``hang_up`` ends the call
        that is under way with OSError. An attempt takes at most ``request_timeout_ms``. ``queue_max`` bounds
        what waits.
        """
        self._broker_id = broker_id
        self._find_node = find_node
        self._hang_up = hang_up
        self._guard = guard
        self._clock = clock
        self._request_timeout_ms = request_timeout_ms
        self._queue_max = queue_max
        self._queue: deque[_Request] = deque()
        self._under_way: _Request | None = None
        """Sent again by a loop that begins anew after a bug's exception."""
        self._is_closed = False
        self._arrived = Signal()
        self._hurry = Signal()
        """Ends a pause between two attempts."""

    # From any thread

    def send(
        self,
        message: Any,
        on_response: OnResponse,
        *,
        on_failure: OnFailure = lambda error: None,
        deadline_ms: MonotonicMs | None = None,
    ) -> bool:
        """Put a request into the queue; False if the queue is full or closed.

        ``on_response`` is called with the response, or ``on_failure`` with TimeoutError after ``deadline_ms``
        (on the monotonic clock); none of them after ``close``. Both are called on the loop's thread and must
        be short.
        """
        with self._guard:
            if self._is_closed or (self._queue_max is not None and len(self._queue) >= self._queue_max):
                return False
            self._queue.append(_Request(message, on_response, on_failure, deadline_ms))
        self._arrived.give()
        return True

    def moved(self) -> None:
        """The broker has another address: send there at once what is under way to the old address."""
        self._hang_up(self._broker_id)
        self._hurry.give()

    def close(self) -> None:
        """Forget what waits, and end the loop."""
        with self._guard:
            self._is_closed = True
            self._queue.clear()
        self._arrived.give()
        self._hurry.give()
        self._hang_up(self._broker_id)

    # The loop

    def loop(self) -> Loop:
        """Send request after request until ``close``."""
        while not self._is_closed:
            request = self._next()
            if request is None:
                yield Await(self._arrived)
            else:
                yield from self._deliver(request)

    def _next(self) -> _Request | None:
        """The request under way, or else the first of the queue; None if nothing waits."""
        with self._guard:
            if self._under_way is None and self._queue:
                self._under_way = self._queue.popleft()
            return self._under_way

    def _deliver(self, request: _Request) -> Loop:
        """Send until the request is answered, its deadline is over, or the sender is closed."""
        backoff_ms = BACKOFF_MS
        while True:
            left_ms = self._left_ms(request)
            if left_ms <= 0:
                name = type(request.message).__name__
                self._under_way = None
                request.on_failure(TimeoutError(f"broker {self._broker_id} has not answered {name} in time"))
                return
            self._hurry.take()
            try:
                node = self._find_node(self._broker_id)
                if node is None:
                    raise ConnectionError(f"the address of broker {self._broker_id} is not known")
                response = yield CallBroker(node, request.message, min(self._request_timeout_ms, left_ms))
            except (OSError, SparklogError) as error:
                if self._has_ended():
                    return
                logger.info("broker %d, %s: %s", self._broker_id, type(request.message).__name__, error)
                is_hurried = yield Await(self._hurry, max(0, min(backoff_ms, self._left_ms(request))))
                backoff_ms = BACKOFF_MS if is_hurried else min(2 * backoff_ms, BACKOFF_MAX_MS)
            else:
                self._under_way = None
                if not self._has_ended():
                    request.on_response(response)
                return
            if self._has_ended():
                return

    def _has_ended(self) -> bool:
        """Whether it was closed. (A method, because another thread closes it.)"""
        return self._is_closed

    def _left_ms(self, request: _Request) -> int:
        """How long the request may take yet; without a deadline as long as one attempt may."""
        if request.deadline_ms is None:
            return self._request_timeout_ms
        return request.deadline_ms - self._clock.monotonic_ms()
