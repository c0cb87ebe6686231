"""Replies that a socket does not take at once, while requests, throttles and idle times go on beside them."""

import selectors
import threading

import pytest

from sparklog.model.time import MonotonicMs, WallMs
from tests.network.frames import frame
from tests.network.held_handlers import Parking
from tests.waiting import until

IS_OVER_BOTH = True

LARGE = b"x" * (16 * 1024 * 1024)
"""More than the buffers of a socket hold."""

IDLE_MS = 60_000


class ManualClock:
    """Moves when a test says so. The processor reads it whenever it is woken."""

    def __init__(self):
        self.now_ms = 1_000_000

    def monotonic_ms(self):
        return MonotonicMs(self.now_ms)

    def wall_ms(self):
        return WallMs(self.now_ms)


@pytest.fixture
def parked():
    return Parking()


@pytest.fixture
def start(start_reactor, parked):
    """A reactor in which each request may begin beside those that are not answered."""
    return lambda handle=parked, **settings: start_reactor(handle, begins_beside=lambda _: True, **settings)


def fill(exchange):
    """Answer with more than the socket takes; on return the processor waits until it takes more."""
    exchange.reply([frame(LARGE)])
    until(lambda: exchange._path.watched == selectors.EVENT_WRITE, "the processor to watch for room")


def test_a_request_ends_its_work_while_an_earlier_reply_fills_the_socket(start, connect, parked):
    """The next request, which arrives after all that, is served."""
    client = connect(start(), receive_buffer=4096)
    client.send(b"1")
    first = parked.next()
    first.let_next_begin()
    client.send(b"2")
    second = parked.next()
    fill(first)
    second.let_next_begin()
    assert client.read_frame() == LARGE
    second.reply([frame(b"2")])
    assert client.read_frame() == b"2"
    client.send(b"3")
    parked.next().reply([frame(b"3")])
    assert client.read_frame() == b"3"


def test_a_throttle_that_ends_while_a_reply_fills_the_socket_unmutes_after_it(start, connect, parked):
    client = connect(start(), receive_buffer=4096)
    client.send(b"1")
    first = parked.next()
    first.let_next_begin()
    client.send(b"2")
    second = parked.next()
    second.let_next_begin()
    first.reply([frame(b"1")], throttle_ms=100)
    fill(second)
    assert client.read_frame() == b"1"
    threading.Event().wait(0.2)  # the throttle ends: nothing tells
    assert client.read_frame() == LARGE
    client.send(b"3")
    parked.next().reply([frame(b"3")])
    assert client.read_frame() == b"3"


def test_a_throttle_that_is_given_during_another_one_follows_it(start, connect, parked):
    client = connect(start())
    client.send(b"1")
    first = parked.next()
    first.let_next_begin()
    client.send(b"2")
    second = parked.next()
    second.let_next_begin()
    first.reply([frame(b"1")], throttle_ms=300)
    assert client.read_frame() == b"1"
    second.reply([frame(b"2")], throttle_ms=3_600_000)
    assert client.read_frame() == b"2"
    client.send(b"3")
    assert not parked.arrived.acquire(timeout=0.6)


def test_a_full_request_queue_does_not_stop_the_rest_of_a_reply(start, connect):
    """The connection is held back by the backlog, and its earlier reply fills the socket meanwhile."""
    may_go_on, exchanges, arrived = threading.Event(), [], threading.Semaphore(0)

    def handle(exchange):
        exchanges.append(exchange)
        arrived.release()
        if bytes(exchange.frame) == b"waits":
            exchange.let_next_begin()
            return
        assert may_go_on.wait(60)
        exchange.reply([frame(b"done")])

    reactor = start(handle, handlers=1, queue_max=1)
    client = connect(reactor, receive_buffer=4096)
    client.send(b"waits")
    assert arrived.acquire(timeout=60)
    crowd = [connect(reactor) for _ in range(3)]
    crowd[0].send(b"works")
    assert arrived.acquire(timeout=60)
    crowd[1].send(b"queued")
    until(lambda: reactor.requests_waiting == 1, "the queue to fill")
    crowd[2].send(b"backlog")
    (processor,) = reactor._processors
    until(lambda: processor._backlog, "a backlog")
    client.send(b"held back")
    until(lambda: processor._held_back, "the connection to be held back")
    fill(exchanges[0])
    may_go_on.set()
    assert [one.read_frame() for one in crowd] == [b"done"] * 3
    assert client.read_frame() == LARGE
    assert client.read_frame() == b"done"


def test_a_connection_that_breaks_while_two_threads_need_its_processor_ends_quietly(
    start, connect, parked, caplog
):
    reactor = start()
    for _ in range(20):
        client = connect(reactor, receive_buffer=4096)
        client.send(b"1")
        first = parked.next()
        first.let_next_begin()
        client.send(b"2")
        second = parked.next()
        first.reply([frame(LARGE)])
        client.reset()
        second.let_next_begin()
        second.let_next_begin()
    until(lambda: reactor.connections == 0, "the connections to end")
    assert "failed over it" not in caplog.text


def let_sweep(reactor, connect, parked):
    """Have the processor look at its clock, and sweep: after two requests the turn of the first is over."""
    other = connect(reactor)
    for _ in range(2):
        other.send(b"other")
        parked.next().reply([frame(b"other")])
        assert other.read_frame() == b"other"


def test_a_connection_is_not_idle_right_after_a_reply_that_took_long(start, connect, parked):
    clock = ManualClock()
    reactor = start(clock=clock, idle_ms=IDLE_MS)
    client = connect(reactor)
    client.send(b"1")
    exchange = parked.next()
    exchange.let_next_begin()
    clock.now_ms += 2 * IDLE_MS
    exchange.reply([frame(b"1")])
    assert client.read_frame() == b"1"
    let_sweep(reactor, connect, parked)
    client.send(b"2")
    parked.next().reply([frame(b"2")])
    assert client.read_frame() == b"2"


def test_a_late_reply_that_fills_the_socket_has_the_idle_time_to_leave(start, connect, parked):
    clock = ManualClock()
    reactor = start(clock=clock, idle_ms=IDLE_MS)
    client = connect(reactor, receive_buffer=4096)
    client.send(b"1")
    exchange = parked.next()
    clock.now_ms += 2 * IDLE_MS
    fill(exchange)
    let_sweep(reactor, connect, parked)
    assert client.read_frame() == LARGE
