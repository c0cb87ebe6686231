"""The server: acceptors, processors, one bounded request queue, handlers.

    acceptor per listener -> processors (selectors) -> request queue -> handlers -> reply
                                  ^                                                   |
                                  +------------- what the socket did not take --------+

A connection to a listener with TLS goes to its processor after its handshake (``handshakes``).

A request is read by a processor, waits in the queue, and is given to ``handle`` on one of the handler threads
as an ``Exchange``. A short one that finds nothing else waiting is worked on by its processor (``in_place``),
which saves the hop. A request may be answered right there or, when it is parked, later by whichever thread
completes it. A connection's answers leave in the order of its requests, which lets an idempotent producer
have five batches under way. It has one request in progress, but for produces that wait for followers
(``reply_order``).

``handle`` must not fail: if it does, the traceback is logged and that connection alone is closed.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, Self

from sparklog.core.client_quotas.connection_rates import UNLIMITED_RATE
from sparklog.core.client_quotas.sampled_rate import Windows
from sparklog.core.security.requester import ANONYMOUS
from sparklog.model.time import Clock, MonotonicMs
from sparklog.network.accepting.connection_count import ConnectionCount, ConnectionLimits, Stage
from sparklog.network.acceptor import Acceptor, Listener, bind
from sparklog.network.channel import Channel
from sparklog.network.clock import SystemClock
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.network.frame_budget import FrameBudget
from sparklog.network.in_place import WorksInPlace, never_in_place
from sparklog.network.processor import Processor
from sparklog.network.reply_order import BeginsBeside, never_beside
from sparklog.network.request_queue import RequestQueue
from sparklog.network.request_statistics import RequestStatistics
from sparklog.network.streams.byte_stream import ByteStream, PlainStream

if TYPE_CHECKING:
    from sparklog.network.accepting.handshakes import Handshakes
    from sparklog.network.login.connection_login import LoginSettings

logger: Final = logging.getLogger(__name__)

PROCESSORS_DEFAULT: Final = 1
HANDLERS_DEFAULT: Final = 2
QUEUE_MAX_DEFAULT: Final = 500
FRAME_BYTES_MAX_DEFAULT: Final = 100 * 1024 * 1024
IDLE_MS_DEFAULT: Final = 600_000
LOGIN_MS_DEFAULT: Final = 10_000
STOP_TIMEOUT_MS_DEFAULT: Final = 10_000


class Reactor:
    """A server on ``listeners``; ``start`` and ``stop`` each once, from any thread."""

    def __init__(
        self,
        listeners: Sequence[Listener],
        handle: Callable[[Exchange], None],
        *,
        processors: int = PROCESSORS_DEFAULT,
        handlers: int = HANDLERS_DEFAULT,
        queue_max: int = QUEUE_MAX_DEFAULT,
        frame_bytes_max: int = FRAME_BYTES_MAX_DEFAULT,
        frames_bytes_max: int | None = None,
        connection_limits: Callable[[], ConnectionLimits] = ConnectionLimits,
        address_rate: Callable[[str], float] = lambda address: UNLIMITED_RATE,
        rate_windows: Windows | None = None,
        idle_ms: int = IDLE_MS_DEFAULT,
        login_ms: int = LOGIN_MS_DEFAULT,
        begins_beside: BeginsBeside = never_beside,
        works_in_place: WorksInPlace = never_in_place,
        statistics: RequestStatistics | None = None,
        clock: Clock | None = None,
        name: str = "reactor",
    ) -> None:
        """``frame_bytes_max``: of one request. ``frames_bytes_max``: of all that are read and not handled.
        ``connection_limits``: called for every new connection. ``address_rate``: connections a second that
        an address may open, measured over ``rate_windows``. ``idle_ms``: negative for no limit.
        ``login_ms``: how long a client may take until it is in: the handshake of TLS and its login.
        ``begins_beside``: see ``reply_order``. ``works_in_place``: see ``in_place``.
        """
        if processors < 1 or handlers < 1:
            raise ValueError(f"{processors} processors and {handlers} handlers: at least 1 of each is needed")
        self._listeners = tuple(listeners)
        self._handle = handle
        self._processors_wanted = processors
        self._frame_bytes_max = frame_bytes_max
        self._budget = None if frames_bytes_max is None else FrameBudget(frames_bytes_max)
        self._idle_ms = idle_ms
        self._login_ms = login_ms
        self._clock: Clock = clock or SystemClock()
        self._begins_beside = begins_beside
        self._works_in_place = works_in_place
        self._statistics = statistics
        self._name = name
        self._requests = RequestQueue(queue_max)
        self._in_hand: list[RequestContext | None] = [None] * handlers
        """What each handler works on."""
        self._acceptors: list[Acceptor] = []
        self._processors: list[Processor] = []
        self._handshakes: Handshakes | None = None
        self._handlers = [
            threading.Thread(
                target=self._run_handler, args=(number,), name=f"{name}-handler-{number}", daemon=True
            )
            for number in range(handlers)
        ]
        self._connection_ids = count(1)
        self._connections = ConnectionCount(connection_limits, self._clock, address_rate, rate_windows)
        self._connections.on_slot = self._wake_acceptors
        self._lifecycle = threading.Lock()
        self._state = "new"
        self._is_down = threading.Event()

    @property
    def ports(self) -> list[int]:
        """The bound ports in the order of the listeners, once started."""
        return [acceptor.port for acceptor in self._acceptors]

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return self._connections.total

    @property
    def requests_waiting(self) -> int:
        """How many requests are in the request queue."""
        return len(self._requests)

    @property
    def frames_bytes(self) -> int:
        """The bytes of requests that are read and not handled; 0 if they are not bounded."""
        return 0 if self._budget is None else self._budget.held_bytes

    @property
    def connections_refused(self) -> int:
        """How many connections were closed at once, because they were above a limit."""
        return self._connections.refused

    @property
    def connections_failed(self) -> Mapping[tuple[str, Stage], int]:
        """How many handshakes and logins have failed, by listener and stage."""
        return self._connections.failed()

    @property
    def connections_held_up(self) -> int:
        """How many connections are not read because the bytes of requests are used up."""
        return sum(processor.held_up for processor in self._processors)

    def attentive_until(self) -> MonotonicMs:
        """Now, if a handler is free; else the arrival of the newest request in hand, as later ones may
        wait. A processor has received nothing since the selector reported what it attends to."""
        until_ms = self._clock.monotonic_ms()
        in_hand = list(self._in_hand)
        if in_hand and None not in in_hand:
            until_ms = max(context.received_ms for context in in_hand if context is not None)
        for processor in self._processors:
            if (busy_since_ms := processor.busy_since_ms) is not None:
                until_ms = min(until_ms, busy_since_ms)
        return until_ms

    def start(self) -> None:
        """Listen; on return every port is bound. If one cannot be: OSError, and nothing is left open."""
        with self._lifecycle:
            if self._state != "new":
                raise RuntimeError(f"reactor {self._name!r} is {self._state}; make a new one to start again")
            sockets = self._bind_all()
            self._state = "started"
            self._processors = [self._new_processor(number) for number in range(self._processors_wanted)]
            if any(listener.tls is not None for listener in self._listeners):
                self._handshakes = self._new_handshakes()
                self._handshakes.start()
            self._acceptors = [
                self._new_acceptor(listener, sock)
                for listener, sock in zip(self._listeners, sockets, strict=True)
            ]
            for handler in self._handlers:
                handler.start()
            for processor in self._processors:
                processor.start()
            for acceptor in self._acceptors:
                acceptor.start()

    def stop(self, timeout_ms: int = STOP_TIMEOUT_MS_DEFAULT) -> None:
        """Accept no more, let the handlers finish what they have in hand, close all, end all threads.

        Requests that still wait in the queue are dropped with their connections, and answers to parked ones
        that come later go nowhere. A handler that has not returned after ``timeout_ms`` is abandoned and
        named in the log. Stopping twice is fine, and so is stopping from within a handler.
        """
        with self._lifecycle:
            before, self._state = self._state, "stopped"
        if before == "started":
            self._stop_all(timeout_ms)
            self._is_down.set()
        elif before == "new":
            self._is_down.set()
        elif threading.current_thread() not in self._workers:
            self._is_down.wait()  # somebody else stops it; handlers are waited for themselves

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def _stop_all(self, timeout_ms: int) -> None:
        for acceptor in self._acceptors:
            acceptor.stop()
        if self._handshakes is not None:
            self._handshakes.stop()
        self._connections.close()
        self._requests.close(len(self._handlers))
        self._join(self._handlers, timeout_ms)
        for processor in self._processors:
            processor.stop()
            self._join(processor.threads, timeout_ms)

    @property
    def _workers(self) -> list[threading.Thread]:
        """The threads that may be inside ``handle``."""
        return [*self._handlers, *(thread for one in self._processors for thread in one.threads)]

    def _bind_all(self) -> list[socket.socket]:
        sockets: list[socket.socket] = []
        try:
            sockets.extend(bind(listener) for listener in self._listeners)
        except OSError:
            for sock in sockets:
                sock.close()
            raise
        return sockets

    def _new_processor(self, number: int) -> Processor:
        return Processor(
            number,
            name=f"{self._name}-processor-{number}",
            requests=self._requests,
            idle_ms=self._idle_ms,
            clock=self._clock,
            on_closed=self._connections.leave,
            on_refused=partial(self._connections.note_failure, "login"),
            work=self._work_on,
            works_in_place=self._works_in_place,
            budget=self._budget,
        )

    def _new_acceptor(self, listener: Listener, sock: socket.socket) -> Acceptor:
        def welcome(accepted: socket.socket, client_host: str) -> None:
            if self._handshakes is not None and listener.tls is not None:
                self._handshakes.adopt(accepted, client_host, listener)
            else:
                due_ms = MonotonicMs(self._clock.monotonic_ms() + self._login_ms)
                self._welcome(PlainStream(accepted), client_host, listener, ANONYMOUS, due_ms)

        return Acceptor(
            listener,
            sock,
            name=f"{self._name}-acceptor-{listener.name}",
            welcome=welcome,
            upkeep=self._connections.report_refusals,
            turns=self._connections,
        )

    def _wake_acceptors(self) -> None:
        for acceptor in self._acceptors:
            acceptor.wake()

    def _new_handshakes(self) -> "Handshakes":
        # OpenSSL is imported by servers that use TLS alone.
        from sparklog.network.accepting.handshakes import Handshakes

        return Handshakes(
            name=f"{self._name}-handshakes",
            handshake_ms=self._login_ms,
            clock=self._clock,
            welcome=self._welcome,
            on_refused=partial(self._connections.note_failure, "TLS"),
            on_closed=self._connections.leave,
        )

    def _join(self, workers: Sequence[threading.Thread], timeout_ms: int) -> None:
        deadline = time.monotonic() + timeout_ms / 1_000
        for thread in workers:
            if thread is threading.current_thread():
                continue
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                logger.error("%s did not end within %d ms and is left behind", thread.name, timeout_ms)

    # On an acceptor's thread, or that of the handshakes

    def _welcome(
        self, stream: ByteStream, client_host: str, listener: Listener, principal: str, due_ms: MonotonicMs
    ) -> None:
        connection_id = next(self._connection_ids)
        processor = self._processors[connection_id % len(self._processors)]
        channel = Channel(
            stream,
            connection_id=connection_id,
            client_host=client_host,
            listener=listener.name,
            principal=principal,
            frame_bytes_max=self._frame_bytes_max,
            clock=self._clock,
            owner=processor,
            begins_beside=self._begins_beside,
            statistics=self._statistics,
        )
        if listener.login is not None:
            self._require_login(channel, listener.name, listener.login, due_ms)
        processor.adopt(channel)

    def _require_login(
        self, channel: Channel, listener: str, settings: "LoginSettings", due_ms: MonotonicMs
    ) -> None:
        # Imported by servers that have logins alone.
        from sparklog.network.login.connection_login import ConnectionLogin

        def on_refused(why: str) -> None:
            self._connections.note_failure("login", channel.client_host, listener, why)

        login = ConnectionLogin(settings, channel.disconnect, on_refused)
        channel.require_login(login, due_ms, settings.request_bytes_max)

    # On a handler's thread

    def _run_handler(self, number: int) -> None:
        while (exchange := self._requests.take()) is not None:
            self._in_hand[number] = exchange.context
            self._work_on(exchange)
            self._in_hand[number] = None
            del exchange  # an idle handler must not keep the last request's memory

    # On a handler's thread, or a processor's

    def _work_on(self, exchange: Exchange) -> None:
        exchange.began_ns = perf_counter_ns()
        try:
            if exchange.passes_login():
                self._handle(exchange)
        except Exception:
            logger.exception(
                "a request of connection %d from %s failed; the connection is closed",
                exchange.context.connection_id, exchange.context.client_host,
            )  # fmt: skip
            exchange.abandon()
        exchange.handled_ns = perf_counter_ns()
        if self._budget is not None:
            self._budget.credit(exchange.charged_bytes)
