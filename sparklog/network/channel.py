"""The server's side of one connection: whose turn it is, and what is half received or half written.

A connection has two halves, each with a state that says which thread may use it. So no lock is held during a
system call.

    the receiving half, ``phase``
    READING    the processor waits for the next request
    HANDLING   a request is queued or being worked on; nobody receives (muted)
    RESUMING   a thread that has ended the request looks for the next one among the bytes received already
    RESUMABLE  the processor is to go on: a throttle begins, or what the client has pipelined is looked at
    THROTTLED  the connection stays muted until its time
    CLOSED     the end

    the sending half, ``sending``
    IDLE       no reply can be written
    REPLYING   the thread that gave a reply writes it, and those that are ready after it
    WRITING    the socket was full: the processor writes the rest when it can

The thread that replies tries to write at once. Nearly always the socket takes all of it, and two hops between
threads are saved (to the processor, and back to a selector that would have to be re-armed); that is the
difference between a muted connection that costs system calls and one that costs none. For the same reason
muting is lazy: the socket stays registered for reading, and is taken out only if a client pipelines, that is
when the selector reports it while its request is still being handled. And a next request that has arrived
already goes into the request queue from here, past the processor.

Usually the next request begins when the reply is written. A produce that waits for its followers lets the
next produce begin before (``let_next_begin``, ``reply_order``). While the socket is full the receiving half
stays as it is: its next phase begins when the rest is written.
"""

import enum
import logging
import selectors
import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import Final, Protocol

from sparklog.core.security.requester import ANONYMOUS
from sparklog.model.errors import WireError
from sparklog.model.parts import Part
from sparklog.model.time import Clock, MonotonicMs
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.network.reply_order import BeginsBeside, ReplyOrder, never_beside
from sparklog.network.request_statistics import RequestStatistics
from sparklog.network.streams.byte_stream import ByteStream
from sparklog.network.streams.inbound import BOUND_BEFORE_LOGIN, FrameReceiver
from sparklog.network.streams.outbound import OutboundParts
from sparklog.wire.forms.connection_forms import ConnectionForms

logger: Final = logging.getLogger(__name__)

TURN_BYTES: Final = 4 * 1024 * 1024
"""After this many bytes of one reply the processor's other connections get their turn."""

LINGER_MS: Final = 500
"""How long a connection stays after its last reply: some clients see its end before they read that."""

NOTHING_WATCHED: Final = 0

NEVER_MS: Final = MonotonicMs(1 << 62)


def _count_nothing(_: Exchange) -> None:
    """For servers without statistics."""


class Phase(enum.Enum):
    READING = enum.auto()
    HANDLING = enum.auto()
    RESUMING = enum.auto()
    RESUMABLE = enum.auto()
    THROTTLED = enum.auto()
    CLOSED = enum.auto()


class Sending(enum.Enum):
    IDLE = enum.auto()
    REPLYING = enum.auto()
    WRITING = enum.auto()


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

    def postpone(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do ``action`` after ``delay_ms``, on the processor's thread."""


class LoginOfChannel(Protocol):
    """The login of one connection, which is asked before each of its requests."""

    @property
    def is_in(self) -> bool:
        """Whether the client has logged in."""

    def admits(self, exchange: Exchange) -> bool:
        """Whether the request goes to its handler; if not, it has been answered."""

    def note_refusal(self, why: str) -> None:
        """The client is hung up on: a stranger's line in the log, of which there are few."""

    def close(self) -> None:
        """The connection has ended."""


class Channel:
    """One accepted connection. Methods that begin with ``on_processor`` are for the processor's thread."""

    __slots__ = (
        "_clock",
        "_count",
        "_forms",
        "_frame_bytes_max",
        "_guard",
        "_held",
        "_is_doomed",
        "_is_over",
        "_order",
        "_owner",
        "_users",
        "client_host",
        "connection_id",
        "last_progress_ms",
        "listener",
        "login",
        "login_due_ms",
        "outbound",
        "phase",
        "principal",
        "receiver",
        "sending",
        "stream",
        "throttle_ms",
        "watched",
    )

    def __init__(
        self,
        stream: ByteStream,
        *,
        connection_id: int,
        client_host: str,
        listener: str,
        principal: str = ANONYMOUS,
        frame_bytes_max: int,
        clock: Clock,
        owner: ChannelOwner,
        begins_beside: BeginsBeside = never_beside,
        statistics: RequestStatistics | None = None,
    ) -> None:
        self.stream = stream
        self.connection_id = connection_id
        self.client_host = client_host
        self.listener = listener
        self.principal = principal
        self.login: LoginOfChannel | None = None
        self.login_due_ms: MonotonicMs = NEVER_MS
        self.receiver = FrameReceiver(frame_bytes_max, owner.admit)
        self.outbound: OutboundParts | None = None
        self.phase = Phase.READING
        self.sending = Sending.IDLE
        self.watched = NOTHING_WATCHED  # what the processor's selector watches for, changed by it alone
        self.throttle_ms = 0
        self.last_progress_ms: MonotonicMs = clock.monotonic_ms()
        self._frame_bytes_max = frame_bytes_max
        self._clock = clock
        self._owner = owner
        self._count = _count_nothing if statistics is None else statistics.record
        self._forms = ConnectionForms()
        self._order = ReplyOrder(begins_beside)
        self._held: Exchange | None = None  # the newest request, which waits until it is the only one
        self._guard = threading.Lock()  # over the states, ``_order`` and ``_held``; held for a few lines
        self._is_doomed = False
        self._is_over = False  # the last reply is written
        self._users = 0  # threads in REPLYING or RESUMING: the socket stays open while there are any

    def __str__(self) -> str:
        return f"connection {self.connection_id} from {self.client_host} on {self.listener}"

    # What exchanges call, from any thread.

    def send_reply(self, exchange: Exchange, parts: Sequence[Part], throttle_ms: int) -> None:
        with self._guard:
            if self.phase is Phase.CLOSED or self._is_doomed:
                return  # the client has gone, or the server is stopping
            exchange.reply_parts = parts
            exchange.throttle_ms = throttle_ms
            if self.sending is not Sending.IDLE or self._order.ready() is not exchange:
                return  # written after the earlier ones, by whoever writes the last of them
            self.sending = Sending.REPLYING
            self._users += 1
        self._write_from(exchange)

    def let_next_begin(self, exchange: Exchange) -> None:
        with self._guard:
            if self._order.newest is not exchange:
                return  # its reply is written, and the next one has begun
            self._order.is_newest_settled = True
            resumes = self._may_resume()
        if resumes:
            self._resume()

    def disconnect(self) -> None:
        with self._guard:
            self._is_doomed = True
        self._owner.attend(self)

    def require_login(self, login: LoginOfChannel, due_ms: MonotonicMs, frame_bytes_max: int) -> None:
        """Before the first request: ``login`` decides which are served. It must be done by ``due_ms``, and
        frames are small until it is.
        """
        self.login = login
        self.login_due_ms = due_ms
        self.receiver.bound(frame_bytes_max, BOUND_BEFORE_LOGIN)

    def admits(self, exchange: Exchange) -> bool:
        return self.login is None or self.login.admits(exchange)

    def identify(self, principal: str) -> None:
        self.principal = principal
        self.receiver.bound(self._frame_bytes_max)

    def send_last(self, exchange: Exchange, parts: Sequence[Part], delay_ms: int) -> None:
        exchange.is_last = True
        send = partial(self.send_reply, exchange, parts, 0) if parts else self.disconnect
        if delay_ms <= 0:
            send()
        else:
            self._owner.postpone(delay_ms, send)

    # Replies

    def _write_from(self, exchange: Exchange | None) -> None:
        """Write the reply of ``exchange``, and those that are ready after it."""
        while exchange is not None:
            assert exchange.reply_parts is not None
            try:
                outbound = OutboundParts(exchange.reply_parts)
                is_done = outbound.write(self.stream, TURN_BYTES)
            except OSError as error:
                self.log_broken_reply(error)
                self._break()
                return
            except BaseException:  # a part that is none: a bug of the caller, but the socket must not leak
                self._break()
                raise
            if not is_done:
                self._leave_rest(outbound)
                return
            exchange = self._on_written(exchange)

    def _on_written(self, exchange: Exchange) -> Exchange | None:
        """The next reply that can be written; without one, this thread may have to look for a request."""
        self._count(exchange)
        with self._guard:
            self.last_progress_ms = self._clock.monotonic_ms()
            exchange.reply_parts = None
            self._order.remove(exchange)
            if self._has_closed():
                return None
            self._is_over |= exchange.is_last
            self.throttle_ms = max(self.throttle_ms, exchange.throttle_ms)
            upcoming = None if self._is_doomed or self._is_over else self._order.ready()
            if upcoming is not None:
                upcoming.leaving_ns = perf_counter_ns()
                return upcoming
            self._end_sending(Sending.IDLE)
            starts, self._held = self._take_held()
            resumes = self._may_resume()
            is_muted_late = self.throttle_ms > 0 and self.phase is Phase.READING
        if exchange.is_last:
            self._owner.postpone(LINGER_MS, self.disconnect)
        elif starts is not None:
            self._owner.submit(starts)
        elif resumes:
            self._resume()
        elif is_muted_late:
            self._owner.attend(self)
        return None

    def _break(self) -> None:
        """The reply cannot be written: the processor closes the connection."""
        with self._guard:
            if self._has_closed():
                return
            self._is_doomed = True
            self._end_sending(Sending.IDLE)
        self._owner.attend(self)

    def _leave_rest(self, rest: OutboundParts) -> None:
        with self._guard:
            if self._has_closed():
                return
            self.outbound = rest
            self.last_progress_ms = self._clock.monotonic_ms()
            self._end_sending(Sending.WRITING)
        self._owner.attend(self)

    def _end_sending(self, sending: Sending) -> None:
        """Within the guard: this thread writes no more."""
        self.sending = sending
        self._users -= 1

    def _has_closed(self) -> bool:
        """Whether the processor closed the connection. The caller holds the guard and is a user; the last
        user closes the socket.
        """
        if self.phase is not Phase.CLOSED:
            return False
        self._users -= 1
        self._end_if_unused()
        return True

    # The next request

    def _may_resume(self) -> bool:
        """Within the guard: whether this thread is to look for the next request. Nearly always nothing of
        that has arrived, and the processor watches for it already.
        """
        if self.phase is not Phase.HANDLING or self._is_doomed or self._is_over:
            return False
        if not self._order.is_newest_settled or not self._order.has_room or self._held is not None:
            return False
        has_arrived = self.receiver.has_unread or self.stream.has_pending
        if self.throttle_ms <= 0 and not has_arrived and self._may_read():
            return False
        self.phase = Phase.RESUMING
        self._users += 1
        return True

    def _resume(self) -> None:
        """Begin the next request if all of it has arrived, or leave that to the processor."""
        may_go_on = self.throttle_ms <= 0
        upcoming = None
        if may_go_on and self.receiver.has_unread:
            may_go_on = not self._owner.has_held_up
            if may_go_on:
                upcoming = self.next_exchange()
                may_go_on = not self.receiver.is_held_up
        if upcoming is None and self.stream.has_pending:
            may_go_on = False  # only the processor receives
        with self._guard:
            if self._has_closed():
                if upcoming is not None:
                    self._owner.credit(upcoming.charged_bytes)
                return
            self._users -= 1
            may_go_on = may_go_on and not self._is_doomed
            is_settled = may_go_on and (upcoming is not None or self._may_read())
            begins = is_settled and upcoming is not None and self._take_up(upcoming)
            if not is_settled:
                self.phase = Phase.RESUMABLE
        if not is_settled:
            if upcoming is not None:  # the connection is doomed
                self._owner.credit(upcoming.charged_bytes)
            self._owner.attend(self)
        elif begins and upcoming is not None:
            self._owner.submit(upcoming)

    def _may_read(self) -> bool:
        """Within the guard: enter READING, if the processor watches for the next request already."""
        if self.watched != selectors.EVENT_READ:
            return False
        self.phase = Phase.READING
        return True

    def take_up(self, exchange: Exchange) -> bool:
        """As ``_take_up``, for the processor."""
        with self._guard:
            return self._take_up(exchange)

    def _take_up(self, exchange: Exchange) -> bool:
        """Within the guard: handle ``exchange`` as the newest request. Whether it may be worked on now;
        otherwise it begins after all earlier replies.
        """
        self.phase = Phase.HANDLING
        self._order.add(exchange)
        if self._order.may_begin(exchange):
            return True
        self._held = exchange
        return False

    def _take_held(self) -> tuple[Exchange | None, Exchange | None]:
        """The held request if it may begin now, and what is held from now on."""
        if self._held is not None and not self._is_doomed and self._order.may_begin(self._held):
            return self._held, None
        return None, self._held

    def log_broken_reply(self, error: OSError) -> None:
        """A peer that has gone is everyday; anything else is about a file that was being sent."""
        level = logging.INFO if isinstance(error, ConnectionError) else logging.ERROR
        logger.log(level, "%s is closed while its reply is written: %s", self, error)

    # What the thread calls that owns the receiving half: the processor, or the one that has just replied.

    def next_exchange(self) -> Exchange | None:
        """The next request, if all of it has arrived; ``take_up`` must follow. A malformed stream dooms the
        connection.
        """
        try:
            frame = self.receiver.next_frame()
        except WireError as error:
            if self.login is not None and self.is_logging_in:
                self.login.note_refusal(str(error))
            else:
                logger.warning("%s is closed: %s", self, error)
            self.disconnect()
            return None
        if frame is None:
            return None
        self.last_progress_ms = received_ms = self._clock.monotonic_ms()
        context = RequestContext(
            self.connection_id, self.client_host, self.listener, received_ms, self.principal
        )
        exchange = Exchange(frame, context, self, self._forms)
        exchange.charged_bytes = self.receiver.charged_bytes
        return exchange

    # What the processor calls.

    @property
    def is_doomed(self) -> bool:
        return self._is_doomed

    @property
    def is_to_be_muted(self) -> bool:
        """Whether a reply that left while the next request was awaited has a throttle."""
        return self.throttle_ms > 0 and self.phase is Phase.READING

    @property
    def is_logging_in(self) -> bool:
        """Whether the client has yet to log in."""
        return self.phase is not Phase.CLOSED and self.login is not None and not self.login.is_in

    @property
    def waits_for_peer(self) -> bool:
        """Whether nothing happens until the client reads or sends."""
        if self.sending is Sending.WRITING:
            return True
        # Without a watch it is held back or up, and waits for us.
        is_read = self.phase is Phase.READING and self.watched != NOTHING_WATCHED
        return is_read and len(self._order) == 0

    @property
    def has_pending(self) -> bool:
        """Whether the stream has bytes that the selector would report if it saw them."""
        is_read = self.phase is Phase.READING and self.watched == selectors.EVENT_READ
        return is_read and self.stream.has_pending

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

    def on_processor_take_throttle(self) -> int:
        """How long the connection is to be muted; a throttle that is given from now on comes after that."""
        with self._guard:
            throttle_ms, self.throttle_ms = self.throttle_ms, 0
            return throttle_ms

    def on_processor_watch(self, events: int) -> None:
        with self._guard:
            self.watched = events

    def on_processor_written(self) -> None:
        """The rest of the oldest reply is written: those that are ready after it follow."""
        with self._guard:
            self.outbound = None
            exchange = self._order.ready()
            assert exchange is not None, "a reply that is half written is ready"
            self.sending = Sending.REPLYING
            self._users += 1
        following = self._on_written(exchange)
        if following is not None:
            self._write_from(following)

    def on_processor_close(self) -> None:
        """Close the connection; the socket too, or its last user does."""
        if self.login is not None:
            self.login.close()
        with self._guard:
            self.phase = Phase.CLOSED
            self.outbound = None
            self._end_if_unused()

    def _end_if_unused(self) -> None:
        """Within the guard: close the socket, and credit what no handler will get."""
        if self._users:
            return
        self.stream.close()
        if self.receiver.underway_bytes is not None:
            self._owner.credit(self.receiver.charged_bytes)
        if self._held is not None:
            self._owner.credit(self._held.charged_bytes)
            self._held = None
        for exchange in self._order.clear():
            self._count(exchange)
