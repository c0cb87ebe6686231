"""Requests to one broker: queued, in order, one under way at a time, each sent again until it is answered.

Whoever sends waits for nothing: a callback gets the response. A request is sent again after every failure,
because its answer may be all that was lost: send only what may be repeated. The next request waits for the
one before, so that the receiver sees them in order, some of them twice. ``close`` forgets what waits.
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from sparklog.model.cluster_facts import Node
from sparklog.model.errors import SparklogError
from sparklog.model.loops import Await, CallBroker, Loop, Signal
from sparklog.model.ports import Guard

logger: Final = logging.getLogger(__name__)

BACKOFF_MS: Final = 50
"""Pause after the first failure of a request; doubles with every further failure."""

BACKOFF_MAX_MS: Final = 1_000

OnResponse = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class _Request:
    message: Any
    on_response: OnResponse


class RequestSender:
    """The queue of requests to one broker, and the ``loop`` that sends them."""

    def __init__(
        self, node: Node, lane: int, hang_up: Callable[[], None], *, guard: Guard, request_timeout_ms: int
    ) -> None:
        """``lane``: of its calls; no other sender has it. ``hang_up`` ends the call that is under way with
        OSError, and refuses every later one. An attempt takes at most ``request_timeout_ms``.
        """
        self.node: Final = node
        self.lane: Final = lane
        self._hang_up = hang_up
        self._guard = guard
        self._request_timeout_ms = request_timeout_ms
        self._queue: deque[_Request] = deque()
        self._under_way: _Request | None = None
        """Sent again by a loop that begins anew after a bug's exception."""
        self._is_closed = False
        self._changed = Signal()
        """A request has arrived, or the sender is closed."""
        self._closing = Signal()
        """Ends a pause between two attempts."""

    # From any thread

    def send(self, message: Any, on_response: OnResponse) -> None:
        """Put a request into the queue; a closed sender drops it.

        ``on_response`` is called with the response on the loop's thread, unless the sender is closed first,
        and must be short.
        """
        with self._guard:
            if self._is_closed:
                return
            self._queue.append(_Request(message, on_response))
        self._changed.give()

    def close(self) -> None:
        """Forget what waits, and end the loop."""
        with self._guard:
            self._is_closed = True
            self._queue.clear()
        self._changed.give()
        self._closing.give()
        self._hang_up()

    # The loop

    def loop(self) -> Loop:
        """Send request after request until ``close``."""
        while not self._is_closed:
            request = self._next()
            if request is None:
                yield Await(self._changed)
            else:
                yield from self._deliver(request)

    def _next(self) -> _Request | None:
        """The request under way, or else the first of the queue; None if nothing waits."""
        with self._guard:
            if self._under_way is None and self._queue:
                self._under_way = self._queue.popleft()
            return self._under_way

    def _deliver(self, request: _Request) -> Loop:
        """Send until the request is answered or the sender is closed."""
        backoff_ms = BACKOFF_MS
        while not self._has_ended():
            try:
                response = yield CallBroker(self.node, request.message, self._request_timeout_ms, self.lane)
            except (OSError, SparklogError) as error:
                if self._has_ended():
                    return
                logger.info("broker %d, %s: %s", self.node.id, type(request.message).__name__, error)
                yield Await(self._closing, backoff_ms)
                backoff_ms = min(2 * backoff_ms, BACKOFF_MAX_MS)
            else:
                self._under_way = None
                if not self._has_ended():
                    request.on_response(response)
                return

    def _has_ended(self) -> bool:
        """Whether it was closed. (A method, because another thread closes it.)"""
        return self._is_closed
