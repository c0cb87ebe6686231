"""A thread with a selector over its share of the connections: it receives requests and finishes replies.

It blocks on nothing but its selector, except that it works on short requests itself while little else waits;
another thread takes its place if one of them turns out to be slow (``in_place``). Its parts:

- the *response queue*: channels that need its attention, because a reply did not fit into the socket, the
  client had pipelined, or the connection is to be closed;
- the *backlog*: requests that the request queue had no room for. While there are any, no channel is read:
  one that becomes readable is taken out of the selector until the backlog is empty. So overload costs at
  most one request per connection here, and is passed on to the clients by TCP;
- the *pending* channels: their stream has bytes that the selector does not see, because a turn ended before
  all were received (TLS). They are received from in the next turn, as if the selector had reported them;
- the *held-up* channels: their next frame has no room in the frame budget. They are not read, and begin their
  frames in the order in which they were held up. Frames under way are still received, and replies written;
- a sweep that closes idle connections, also those that stopped in the middle of a frame or do not read their
  replies. One whose request is still being worked on is not idle: the broker owes it an answer.
"""

import logging
import selectors
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from sparklog.model.time import Clock, MonotonicMs
from sparklog.network.channel import NOTHING_WATCHED, TURN_BYTES, Channel, Phase, Sending
from sparklog.network.due_actions import DueActions
from sparklog.network.exchange import Exchange
from sparklog.network.frame_budget import FrameBudget
from sparklog.network.in_place import InPlace, WorksInPlace, never_in_place
from sparklog.network.request_queue import RequestQueue
from sparklog.network.waker import Waker

logger: Final = logging.getLogger(__name__)

IN_PLACE_EVENTS_MAX: Final = 3
"""With more connections to attend to, handlers work on their requests. Fewer are no reason to hand over: the
followers of a leader ask at the same moment, each time that it has answered them."""

_SWEEPS_PER_IDLE_TIME: Final = 4
_SWEEP_MS_MAX: Final = 30_000
_NEVER_MS: Final = 1 << 62


class Processor:
    """One network thread. ``adopt``, ``attend``, ``submit`` and ``stop`` may be called from any thread."""

    def __init__(
        self,
        number: int,
        *,
        name: str,
        requests: RequestQueue,
        idle_ms: int,
        clock: Clock,
        on_closed: Callable[[str, str], None],
        on_refused: Callable[[str, str, str], None],
        work: Callable[[Exchange], None],
        works_in_place: WorksInPlace = never_in_place,
        budget: FrameBudget | None = None,
    ) -> None:
        """``on_closed`` gets address and listener of each connection that has ended, ``on_refused`` these and
        the reason of a failed login. ``work``: what a handler would do.
        """
        self._number = number
        self._requests = requests
        self._idle_ms = idle_ms if idle_ms >= 0 else _NEVER_MS
        self._clock = clock
        self._on_closed = on_closed
        self._on_refused = on_refused
        self._budget = budget
        self._waker = Waker()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._waker, selectors.EVENT_READ, None)
        self._newcomers: deque[Channel] = deque()
        self._responses: deque[Channel] = deque()
        self._backlog: deque[Exchange] = deque()
        self._held_back: list[Channel] = []  # readable, but not read because of the backlog
        self._held_up: deque[Channel] = deque()
        self._pending: deque[Channel] = deque()
        self._channels: dict[int, Channel] = {}
        self._due = DueActions()
        self._sweep_ms = max(1, min(self._idle_ms // _SWEEPS_PER_IDLE_TIME, _SWEEP_MS_MAX))
        self._next_sweep_ms = MonotonicMs(clock.monotonic_ms() + self._sweep_ms)
        self._is_stopping = self._is_ended = False
        self._has_ended = threading.Event()
        self._has_few = False  # whether the selector has reported few events, which are being attended to
        self.busy_since_ms: MonotonicMs | None = None
        """When the selector reported what is attended to: later requests are not received yet. Else None."""
        self._in_place = InPlace(
            work, works_in_place, self._relieve, name=name, clock=clock, holder=lambda: self._thread.native_id
        )
        self._name = name
        self._thread = self._new_thread()
        self._relieved: list[threading.Thread] = []

    def start(self) -> None:
        self._thread.start()
        self._in_place.start()

    @property
    def threads(self) -> list[threading.Thread]:
        """Threads that may be handling a request: the current one and those that it replaced."""
        return [self._thread, *self._relieved]

    def adopt(self, channel: Channel) -> None:
        self._newcomers.append(channel)
        self._waker.wake()
        if self._is_ended:
            self._turn_away_newcomers()

    def attend(self, channel: Channel) -> None:
        """Put ``channel`` on the response queue."""
        self._responses.append(channel)
        # The processor itself looks there before it waits; so does the thread that takes its place.
        if threading.current_thread() is not self._thread:
            self._waker.wake()

    def submit(self, exchange: Exchange) -> None:
        """Put ``exchange`` into the request queue, or into the backlog if there is no room."""
        if self._backlog or not self._requests.offer(exchange, self._number, self._waker.wake):
            self._backlog.append(exchange)
            self._waker.wake()

    def postpone(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do ``action`` after ``delay_ms``, on this processor's thread."""
        self._due.postpone(delay_ms, action)
        self._waker.wake()

    @property
    def has_held_up(self) -> bool:
        return bool(self._held_up)

    @property
    def held_up(self) -> int:
        return len(self._held_up)

    def admit(self, frame_bytes: int) -> bool:
        return self._budget is None or self._budget.charge(frame_bytes, self._number, self._waker.wake)

    def credit(self, frame_bytes: int) -> None:
        if self._budget is not None:
            self._budget.credit(frame_bytes)

    def stop(self) -> None:
        """Close every connection and end the thread; returns when that is done. A request that holds the
        thread is abandoned with it: another thread takes its place, and ends.
        """
        self._is_stopping = True
        self._waker.wake()
        if self._thread.ident is None:
            self._close_everything()
        elif threading.current_thread() is not self._thread:
            self._has_ended.wait()

    def _new_thread(self) -> threading.Thread:
        return threading.Thread(target=self._run, name=self._name, daemon=True)

    def _relieve(self) -> None:
        """Put another thread into this one's place; on the watch's thread. RuntimeError if none starts."""
        before, self._thread = self._thread, self._new_thread()
        before.name = f"{self._name}-relieved"
        try:
            self._thread.start()
        except RuntimeError:
            self._thread, before.name = before, self._name
            raise
        self._relieved = [*(thread for thread in self._relieved if thread.is_alive()), before]

    def _is_mine(self) -> bool:
        return self._thread is threading.current_thread()

    def _run(self) -> None:
        try:
            self._after_events()  # what the thread before this one has left
            while self._is_mine() and not self._is_stopping:
                self._turn()
        except Exception:
            logger.exception("%s ends, and closes its %d connections", self._thread.name, len(self._channels))
            raise
        finally:
            if self._is_mine():
                self._close_everything()
                self._in_place.stop()
                self._has_ended.set()

    def _turn(self) -> None:
        ready = self._selector.select(self._wait_s())
        self.busy_since_ms = self._clock.monotonic_ms()
        self._has_few = len(ready) <= IN_PLACE_EVENTS_MAX
        for key, events in ready:
            if key.data is None:
                self._waker.clear()
            else:
                self._attend(key.data, events)
            if not self._is_mine():
                return  # the selector reports the other events to the thread that has replaced this one
        self._after_events()

    def _after_events(self) -> None:
        self._has_few = False
        while self._newcomers:
            self._welcome(self._newcomers.popleft())
        while self._responses:
            self._attend(self._responses.popleft(), NOTHING_WATCHED)
        if self._backlog:
            self._work_off_backlog()
        self._readmit()
        for _ in range(len(self._pending)):  # one with more than a turn's worth is pending again
            if (channel := self._pending.popleft()).has_pending:
                self._attend(channel, selectors.EVENT_READ)
        now_ms = self._clock.monotonic_ms()
        for action in self._due.take(now_ms):
            action()
        if now_ms >= self._next_sweep_ms:
            self._close_idle(now_ms)
        self.busy_since_ms = None

    def _wait_s(self) -> float:
        if self._responses or self._pending:
            return 0  # this thread itself has put them there, since it looked
        due_ms = self._due.next_ms
        until_ms = self._next_sweep_ms if due_ms is None else min(due_ms, self._next_sweep_ms)
        return max(0, until_ms - self._clock.monotonic_ms()) / 1_000

    def _attend(self, channel: Channel, events: int) -> None:
        """Do what ``channel`` needs; a failure costs this connection and no other."""
        try:
            if channel.phase is Phase.CLOSED:
                return  # it was put on the response queue by two threads
            if channel.is_doomed:
                self._close(channel)
            elif channel.sending is Sending.WRITING and not self._write(channel):
                return  # all else goes on when the rest is written
            elif channel.phase is Phase.RESUMABLE or channel.is_to_be_muted:
                self._go_on(channel)
            elif events & selectors.EVENT_READ:
                self._on_readable(channel)
        except Exception:
            logger.exception("%s is closed: the processor failed over it", channel)
            self._close(channel)

    # Reading

    def _on_readable(self, channel: Channel) -> None:
        # Only this thread ends READING, so that is known without the channel's guard.
        if channel.phase is not Phase.READING and not channel.on_processor_readable():
            self._selector.unregister(channel.stream)
        elif self._backlog:
            self._watch(channel, NOTHING_WATCHED)
            self._held_back.append(channel)
        else:
            self._receive(channel)

    def _receive(self, channel: Channel) -> None:
        try:
            count = channel.receiver.receive(channel.stream)
        except BlockingIOError:
            self._watch_for_request(channel)
            return
        except OSError as error:
            logger.debug("%s broke: %s", channel, error)
            count = 0
        if count == 0:
            self._close(channel)
            return
        if self._held_up and channel.receiver.underway_bytes is None:
            self._hold_up(channel)
        elif not self._next_request(channel):
            self._wait_for_more(channel)

    def _next_request(self, channel: Channel) -> bool:
        """Pass on the next request, if all of it has arrived; the channel is muted then."""
        exchange = channel.next_exchange()
        if exchange is None:
            return False
        if channel.take_up(exchange):
            if self._has_time() and self._in_place.may_run(exchange):
                self._in_place.run(exchange)
            else:
                self.submit(exchange)
        return True

    def _has_time(self) -> bool:
        """Whether little waits for this processor, as far as it knows, and nothing for a handler."""
        return self._has_few and not (
            len(self._requests) or self._backlog or self._responses or self._newcomers or self._pending
        )

    def _wait_for_more(self, channel: Channel) -> None:
        """Wait for the rest of the next request, or for room for it."""
        if channel.receiver.is_held_up:
            self._hold_up(channel)
        else:
            channel.last_progress_ms = self._clock.monotonic_ms()
            self._watch_for_request(channel)

    def _watch_for_request(self, channel: Channel) -> None:
        """A client that does not take its replies is not read either."""
        is_full = channel.sending is Sending.WRITING
        self._watch(channel, selectors.EVENT_WRITE if is_full else selectors.EVENT_READ)

    def _hold_up(self, channel: Channel) -> None:
        self._watch(channel, NOTHING_WATCHED)
        self._held_up.append(channel)

    def _readmit(self) -> None:
        """Go on with held-up channels, first come, first served, as far as there is room."""
        while self._held_up:
            channel = self._held_up[0]
            if channel.phase is Phase.READING and not self._next_request(channel):
                if channel.receiver.is_held_up:
                    return
                self._wait_for_more(channel)
            self._held_up.popleft()

    def _work_off_backlog(self) -> None:
        while self._backlog:
            if not self._requests.offer(self._backlog[0], self._number, self._waker.wake):
                return
            self._backlog.popleft()
        held_back, self._held_back = self._held_back, []
        for channel in held_back:
            if channel.phase is Phase.READING:
                self._watch_for_request(channel)

    # Writing

    def _write(self, channel: Channel) -> bool:
        """Write the rest of a reply; whether that was all, also of those that were ready after it."""
        outbound = channel.outbound
        assert outbound is not None, f"{channel} is in {Sending.WRITING} without a rest to write"
        before = outbound.sent_bytes, channel.stream.unsent_bytes
        try:
            is_done = outbound.write(channel.stream, TURN_BYTES)
        except OSError as error:
            channel.log_broken_reply(error)
            self._close(channel)
            return False
        if (outbound.sent_bytes, channel.stream.unsent_bytes) != before:
            channel.last_progress_ms = self._clock.monotonic_ms()
        if not is_done:
            self._watch(channel, selectors.EVENT_WRITE)
            return False
        channel.on_processor_written()
        if channel.sending is Sending.WRITING:
            return False  # a reply after it filled the socket again, and has put the channel on the queue
        if channel.watched == selectors.EVENT_WRITE:
            reads = channel.phase is Phase.READING and not channel.receiver.is_held_up
            self._watch(channel, selectors.EVENT_READ if reads else NOTHING_WATCHED)
        return True

    def _go_on(self, channel: Channel) -> None:
        """Begin the throttle of a connection whose request has ended, or read its next one."""
        throttle_ms = channel.on_processor_take_throttle()
        if throttle_ms > 0:
            self._watch(channel, NOTHING_WATCHED)
            channel.on_processor_enter(Phase.THROTTLED)
            until_ms = MonotonicMs(self._clock.monotonic_ms() + throttle_ms)
            self._due.at(until_ms, partial(self._end_throttle, channel))
            return
        self._unmute(channel)

    def _unmute(self, channel: Channel) -> None:
        """Go on with what the client pipelined, or wait for more."""
        channel.on_processor_enter(Phase.READING)
        if not channel.receiver.has_unread:
            self._watch_for_request(channel)
        elif self._held_up:
            self._hold_up(channel)
        elif not self._next_request(channel):
            self._wait_for_more(channel)

    # Time

    def _end_throttle(self, channel: Channel) -> None:
        if channel.phase is Phase.THROTTLED:
            channel.last_progress_ms = self._clock.monotonic_ms()
            channel.on_processor_enter(Phase.RESUMABLE)
            self._attend(channel, NOTHING_WATCHED)

    def _end_late_login(self, connection_id: int) -> None:
        """The time for a login is over. A channel would wait for that with half a stranger's request."""
        if (channel := self._channels.get(connection_id)) is not None and channel.is_logging_in:
            self._on_refused(channel.client_host, channel.listener, "it takes too long")
            self._close(channel)

    def _close_idle(self, now_ms: MonotonicMs) -> None:
        self._next_sweep_ms = MonotonicMs(now_ms + self._sweep_ms)
        for channel in list(self._channels.values()):
            if channel.waits_for_peer and now_ms - channel.last_progress_ms >= self._idle_ms:
                logger.info("%s is closed: no traffic for %d ms", channel, now_ms - channel.last_progress_ms)
                self._close(channel)

    # Coming and going

    def _welcome(self, channel: Channel) -> None:
        self._channels[channel.connection_id] = channel
        if channel.login is not None:
            self._due.at(channel.login_due_ms, partial(self._end_late_login, channel.connection_id))
        try:
            self._watch(channel, selectors.EVENT_READ)
        except OSError as error:  # the kernel's limit of watched descriptors
            logger.warning("%s is closed: it cannot be watched: %s", channel, error)
            self._close(channel)

    def _watch(self, channel: Channel, events: int) -> None:
        if events == selectors.EVENT_READ and channel.stream.has_pending:
            self._pending.append(channel)
        if channel.watched == events:
            return
        if events == NOTHING_WATCHED:
            self._selector.unregister(channel.stream)
        elif channel.watched == NOTHING_WATCHED:
            self._selector.register(channel.stream, events, channel)
        else:
            self._selector.modify(channel.stream, events, channel)
        channel.on_processor_watch(events)

    def _close(self, channel: Channel) -> None:
        if self._channels.pop(channel.connection_id, None) is None:
            return
        self._watch(channel, NOTHING_WATCHED)
        channel.on_processor_close()
        self._on_closed(channel.client_host, channel.listener)

    def _close_everything(self) -> None:
        self._is_ended = True
        for channel in list(self._channels.values()):
            self._close(channel)
        self._turn_away_newcomers()
        self._backlog.clear()
        self._selector.close()
        self._waker.close()

    def _turn_away_newcomers(self) -> None:
        """Close what was accepted too late; the acceptor and this thread may both come here."""
        while True:
            try:
                channel = self._newcomers.popleft()
            except IndexError:
                return
            channel.on_processor_close()
            self._on_closed(channel.client_host, channel.listener)
