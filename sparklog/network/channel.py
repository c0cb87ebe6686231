"""The server's side of one connection: whose turn it is, and what is half received or half written.

A channel is worked on by its processor's thread and, while a reply is being sent, by the thread that
replies. ``phase`` says which of them may touch the socket, so no lock is held during a system call:

    READING    the processor waits for the next request
    HANDLING   a request is queued or being worked on; nobody touches the socket (muted)
    REPLYING   the thread that called ``reply`` writes; only it may close the socket
    WRITING    the socket was full: the processor writes the rest when it can
    THROTTLED  the reply is out, the connection stays muted until its time
    CLOSED     the end

The thread that replies tries to write at once. Nearly always the socket takes all of it, and two hops between
threads are saved (to the processor, and back to a selector that would have to be re-armed); that is the
difference between a muted connection that costs system calls and one that costs none. For the same reason
muting is lazy: the socket stays registered for reading, and is taken out only if a client pipelines, that is
when the selector reports it while its request is still being handled. And a next request that has arrived
already goes into the request queue from here, past the processor.
"""

import enum
import logging
import selectors
import socket
import threading
from collections.abc import Sequence
from typing import Final, Protocol

from sparklog.core.security.requester import ANONYMOUS
from sparklog.model.errors import WireError
from sparklog.model.parts import Part
from sparklog.model.time import Clock, MonotonicMs
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.network.inbound import FrameReceiver
from sparklog.network.outbound import OutboundParts
from sparklog.network.request_statistics import RequestStatistics

_logger: Final = logging.getLogger(__name__)

TURN_BYTES: Final = 4 * 1024 * 1024
"""After this many bytes of one reply the processor's other connections get their turn."""

NOTHING_WATCHED: Final = 0


class Phase(enum.Enum):
    READING = enum.auto()
    HANDLING = enum.auto()
    REPLYING = enum.auto()
    WRITING = enum.auto()
    THROTTLED = enum.auto()
    CLOSED = enum.auto()


class ChannelOwner(Protocol):
    """The processor of a channel; everything here may be used from any thread."""

    @property
    def has_held_up(self) -> bool:
        """Whether channels wait for room in the frame budget. Others must not begin a frame before them."""

    def admit(self, frame_bytes: int) -> bool:
        """Charge a frame to the frame budget; False if there is no room for it yet."""

    def credit(self, frame_bytes: int) -> None:
        """End the charge of a frame that no handler will get."""

    def attend(self, channel: "Channel") -> None:
        """Put ``channel`` on the response queue."""

    def submit(self, exchange: Exchange) -> None:
        """Put ``exchange`` into the request queue, or keep it until there is room."""


class Channel:
    """One accepted connection. Methods that begin with ``on_processor`` are for the processor's thread."""

    __slots__ = (
        "_clock",
        "_current",
        "_guard",
        "_is_doomed",
        "_owner",
        "_statistics",
        "client_host",
        "connection_id",
        "last_progress_ms",
        "listener",
        "outbound",
        "phase",
        "principal",
        "receiver",
        "sock",
        "throttle_ms",
        "watched",
    )

    def __init__(
        self,
        sock: socket.socket,
        *,
        connection_id: int,
        client_host: str,
        listener: str,
        frame_bytes_max: int,
        clock: Clock,
        owner: ChannelOwner,
        statistics: RequestStatistics | None = None,
    ) -> None:
        self.sock = sock
        self.connection_id = connection_id
        self.client_host = client_host
        self.listener = listener
        self.principal = ANONYMOUS
        self.receiver = FrameReceiver(frame_bytes_max, owner.admit)
        self.outbound: OutboundParts | None = None
        self.phase = Phase.READING
        self.watched = NOTHING_WATCHED  # what the processor's selector watches for, changed by it alone
        self.throttle_ms = 0
        self.last_progress_ms: MonotonicMs = clock.monotonic_ms()
        self._clock = clock
        self._owner = owner
        self._statistics = statistics
        self._current: Exchange | None = None  # the request in progress, if statistics are kept
        self._guard = threading.Lock()  # over ``phase`` and ``_is_doomed``; held for a few lines at most
        self._is_doomed = False

    def __str__(self) -> str:
        return f"connection {self.connection_id} from {self.client_host} on {self.listener}"

    # What exchanges call, from any thread.

    def send_reply(self, parts: Sequence[Part], throttle_ms: int) -> None:
        with self._guard:
            if self.phase is not Phase.HANDLING or self._is_doomed:
                return  # the client has gone, or the server is stopping
            self.phase = Phase.REPLYING
        rest: OutboundParts | None = None
        is_broken = False
        try:
            outbound = OutboundParts(parts)
            if not outbound.write(self.sock, TURN_BYTES):
                rest = outbound
        except OSError as error:
            self.log_broken_reply(error)
            is_broken = True
        except BaseException:  # a part that is none: a bug of the caller, but the socket must not leak
            self._after_reply(None, 0, is_broken=True)
            raise
        self._after_reply(rest, throttle_ms, is_broken=is_broken)

    def disconnect(self) -> None:
        with self._guard:
            self._is_doomed = True
        self._owner.attend(self)

    def identify(self, principal: str) -> None:
        self.principal = principal

    def _after_reply(self, rest: OutboundParts | None, throttle_ms: int, *, is_broken: bool) -> None:
        if rest is None:
            self.end_request()
        may_go_on = rest is None and throttle_ms <= 0 and not is_broken
        upcoming = None
        if may_go_on and self.receiver.has_unread:
            if self._owner.has_held_up:
                may_go_on = False
            else:
                upcoming = self.next_exchange()
                may_go_on = not self.receiver.is_held_up
        with self._guard:
            if self.phase is Phase.CLOSED:  # closed by the processor in the meantime, but for the socket
                self.sock.close()
                self._end_charges(upcoming)
                self.end_request()
                return
            self._is_doomed |= is_broken
            is_settled = may_go_on and not self._is_doomed and self._settle(upcoming)
            if not is_settled:
                self.outbound = rest
                self.throttle_ms = throttle_ms
                self.phase = Phase.WRITING
        if not is_settled:
            if upcoming is not None:  # the connection is doomed
                self._owner.credit(upcoming.frame_bytes)
            self._owner.attend(self)
        elif upcoming is not None:
            self._owner.submit(upcoming)

    def _settle(self, upcoming: Exchange | None) -> bool:
        """Enter the next phase without the processor's help, if that is possible."""
        if upcoming is not None:
            self.phase = Phase.HANDLING
        elif self.watched == selectors.EVENT_READ:
            self.last_progress_ms = self._clock.monotonic_ms()
            self.phase = Phase.READING
        else:
            return False
        return True

    def log_broken_reply(self, error: OSError) -> None:
        """A peer that has gone is everyday; anything else is about a file that was being sent."""
        level = logging.INFO if isinstance(error, ConnectionError) else logging.ERROR
        _logger.log(level, "%s is closed while its reply is written: %s", self, error)

    # What the thread calls that owns the receiving half: the processor, or the one that has just replied.

    def next_exchange(self) -> Exchange | None:
        """The next request, if all of it has arrived. A malformed stream dooms the connection."""
        try:
            frame = self.receiver.next_frame()
        except WireError as error:
            _logger.warning("%s is closed: %s", self, error)
            self.disconnect()
            return None
        if frame is None:
            return None
        self.last_progress_ms = received_ms = self._clock.monotonic_ms()
        context = RequestContext(
            connection_id=self.connection_id,
            client_host=self.client_host,
            principal=self.principal,
            listener=self.listener,
            received_ms=received_ms,
        )
        exchange = Exchange(frame, context, self)
        if self._statistics is not None:
            self._current = exchange
        return exchange

    def end_request(self) -> None:
        """The answer is sent, or never will be. Called by the thread that may touch the socket."""
        current, self._current = self._current, None
        if current is not None and self._statistics is not None:
            self._statistics.record(current)

    # What the processor calls.

    @property
    def is_doomed(self) -> bool:
        return self._is_doomed

    def on_processor_readable(self) -> bool:
        """Whether the processor may receive; if not it must stop watching, which is recorded here."""
        with self._guard:
            if self.phase is Phase.READING:
                return True
            self.watched = NOTHING_WATCHED
            return False

    def on_processor_enter(self, phase: Phase) -> None:
        """Hand the channel to its next phase."""
        with self._guard:
            self.phase = phase

    def on_processor_close(self) -> None:
        """Close the socket, or leave that to the thread that is writing to it at this moment."""
        with self._guard:
            is_ours = self.phase is not Phase.REPLYING
            self.phase = Phase.CLOSED
            self.outbound = None
        if is_ours:
            self.sock.close()
            self._end_charges(None)
            self.end_request()

    def _end_charges(self, upcoming: Exchange | None) -> None:
        """Credit what this closed connection was charged for and no handler will get."""
        underway_bytes = self.receiver.underway_bytes
        if underway_bytes is not None:
            self._owner.credit(underway_bytes)
        if upcoming is not None:
            self._owner.credit(upcoming.frame_bytes)
